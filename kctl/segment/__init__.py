"""Kafka's log files, read without a broker.

source: bytes of a file by position. batch: batch headers, one after the other. record, legacy: what is in a batch.
compression: codecs, bounded. resync: the next batch behind damage.
"""
