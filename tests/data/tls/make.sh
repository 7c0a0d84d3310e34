#!/bin/sh
# Makes the certificates of this folder anew, valid from 2020 to 2120. For tests only: the keys are public.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat >"$work/ca.cnf" <<CONFIG
[ca]
default_ca = default
[default]
database = $work/index
serial = $work/serial
new_certs_dir = $work
policy = any
default_md = sha256
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
CONFIG
: >"$work/index"
echo 1000 >"$work/serial"

request() { # name, extension
    openssl req -new -newkey rsa:2048 -nodes -keyout "$work/$1.key" -out "$work/$1.csr" -subj "/CN=kctl test $1" \
        -addext "$2"
}
sign() { # name, end, further options of `openssl ca`
    name=$1
    end=$2
    shift 2
    openssl ca -batch -notext -config "$work/ca.cnf" -startdate 20200101000000Z -enddate "$end" \
        -in "$work/$name.csr" -out "$work/$name.crt" "$@"
}
authority() { # name
    request "$1" basicConstraints=critical,CA:TRUE
    sign "$1" 21200101000000Z -selfsign -keyfile "$work/$1.key"
    cp "$work/$1.crt" "$1.pem"
}
issue() { # name, authority, end, subjectAltName
    request "$1" "subjectAltName=$4"
    sign "$1" "$3" -keyfile "$work/$2.key" -cert "$work/$2.crt"
    cat "$work/$1.key" "$work/$1.crt" >"$1.pem" # PKCS #8 first: what Kafka's PEM keystores want (KIP-651)
}

authority ca
authority unknown-ca
issue server ca 21200101000000Z DNS:localhost,IP:127.0.0.1
issue wrong-host ca 21200101000000Z DNS:elsewhere.example
issue expired ca 20210101000000Z DNS:localhost,IP:127.0.0.1
issue client ca 21200101000000Z DNS:client
issue stranger unknown-ca 21200101000000Z DNS:client
openssl x509 -in client.pem -out client-certificate.pem
openssl pkcs8 -topk8 -in client.pem -out client-key-encrypted.pem -passout pass:key-pass-8d1f
