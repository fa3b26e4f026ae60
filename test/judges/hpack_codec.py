"""
Encodes and decodes lists of fields as python-hpack does. Standard input: {"encode": [connection, ...], "decode": [connection, ...]}.
A connection to encode is a list of [table size or null, huffman, [[name, value, sensitive], ...]]; one to decode is a list of hex.
Texts have one character a byte.
"""

import json
import sys

import hpack


def raw(text):
    return text.encode("latin-1")


def encode(blocks):
    encoder = hpack.Encoder()
    out = []
    for size, huffman, fields in blocks:
        if size is not None:
            encoder.header_table_size = size
        tuples = [
            (hpack.NeverIndexedHeaderTuple if sensitive else hpack.HeaderTuple)(raw(name), raw(value))
            for name, value, sensitive in fields
        ]
        out.append(encoder.encode(tuples, huffman=huffman).hex())
    return out


def decode(blocks):
    decoder = hpack.Decoder(max_header_list_size=2**24)
    return [
        [[n.decode("latin-1"), v.decode("latin-1")] for n, v in decoder.decode(bytes.fromhex(block), raw=True)]
        for block in blocks
    ]


asked = json.load(sys.stdin)
json.dump({"encoded": [encode(one) for one in asked["encode"]], "decoded": [decode(one) for one in asked["decode"]]}, sys.stdout)
