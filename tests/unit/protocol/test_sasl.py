"""SASL against the RFCs' own examples, and kafka-python's client as the other opinion."""

from __future__ import annotations

import base64

import pytest

from kctl.protocol import sasl
from kctl.protocol.sasl import ServerNotTrusted


def test_plain() -> None:
    login = sasl.exchange("PLAIN", "tim", "tanstaaftanstaaf")  # RFC 4616, 4
    assert next(login) == b"\0tim\0tanstaaftanstaaf"
    with pytest.raises(StopIteration):
        login.send(b"")


FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_the_example_of_rfc_7677() -> None:
    login = sasl._scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert next(login) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    proof = b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert login.send(FIRST) == b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0," + proof
    with pytest.raises(StopIteration):
        login.send(FINAL)


@pytest.mark.parametrize(
    ("first", "final"),
    [
        (FIRST.replace(b"r=rO", b"r=XX"), None),
        (FIRST.replace(b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b""), None),  # nothing of its own in the nonce
        (FIRST.replace(b"i=4096", b"i=0"), None),
        (FIRST.replace(b"i=4096", b"i=2000000"), None),
        (FIRST.replace(b"i=4096", b"i=" + b"9" * 5000), None),
        (FIRST.replace(b"i=4096", b"i=-1"), None),
        (FIRST.replace(b"s=W22", b"s=!!!"), None),
        (FIRST.replace(b"s=", b"t="), None),
        (b"", None),
        (b"\xff,=,===", None),
        (FIRST, FINAL.replace(b"v=6", b"v=7")),
        (FIRST, b"v="),
        (FIRST, b"e=other-error"),
        (FIRST, b""),
    ],
)
def test_a_server_that_is_not_right(first: bytes, final: bytes | None) -> None:
    login = sasl._scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    next(login)
    if final is not None:
        login.send(first)
    with pytest.raises(ServerNotTrusted):
        login.send(first if final is None else final)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_same_proof_as_kafka_pythons(mechanism: str) -> None:
    from kafka.net.sasl.scram import ScramClient

    theirs = ScramClient("ops", "pässwörd", mechanism)
    ours = sasl._scram(
        mechanism.lower().replace("scram-", "").replace("-", ""), "ops", "pässwörd", theirs.nonce.decode()
    )
    assert next(ours) == theirs.first_message()
    first = b"r=" + theirs.nonce + b"server,s=" + base64.b64encode(b"salt") + b",i=4096"
    theirs.process_server_first_message(first)
    assert ours.send(first) == theirs.final_message()
    with pytest.raises(StopIteration):
        ours.send(b"v=" + base64.b64encode(theirs.server_signature))


def test_names_are_escaped_and_nonces_differ() -> None:
    one, two = (next(sasl.exchange("SCRAM-SHA-512", "a,b=c", "x")) for _ in range(2))
    assert one.startswith(b"n,,n=a=2Cb=3Dc,r=")
    assert one != two
