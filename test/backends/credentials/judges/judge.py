# What PyJWT, python-jose, Werkzeug and python's base64 make of values of Authorization.
import base64
import json
import sys

import jwt
from jose import jwt as jose_jwt
from werkzeug.http import parse_authorization_header

asked = json.load(sys.stdin)
secret = asked["secret"]


def second(value):
    return value.split()[1]


def pyjwt(value):
    return jwt.decode(second(value), secret, algorithms=["HS256"], options={"verify_aud": False})["sub"]


def pyjwt_rest(value):
    token = value.split(None, 1)[1]
    return jwt.decode(token, secret, algorithms=["HS256"], leeway=10, options={"verify_aud": False})["sub"]


def pyjwt_refresh(value):
    return jwt.decode(second(value), secret, algorithms=["HS256"], options={"verify_exp": False, "verify_aud": False})["sub"]


def python_jose(value):
    return jose_jwt.decode(second(value), secret, algorithms=["HS256"], options={"verify_aud": False})["sub"]


def werkzeug(value):
    read = parse_authorization_header(value)
    return f"{read.username}:{read.password}" if read and read.type == "basic" else None


def by_hand(value):
    scheme, rest = value.split(" ", 1)
    text = base64.b64decode(rest).decode() if scheme.lower() == "basic" else ""
    return text if ":" in text else None


def opaque(value):
    word = second(value)
    return word if word in asked["tokens"] else None


def last_word(value):
    word = value.split()[-1]
    return word if word in asked["tokens"] else None


def pyjwt_replace_token(value):
    token = value.replace("Bearer ", "")
    return jwt.decode(token, secret, algorithms=["HS256"], leeway=10, options={"verify_aud": False})["sub"]


def replaced(value):
    word = value.replace("Bearer", "").strip()
    return word if word in asked["tokens"] else None


def fernet_like(value):
    word = base64.urlsafe_b64decode(second(value))
    return next((name for name, token in asked["encoded"].items() if base64.urlsafe_b64decode(token) == word), None)


def ask(reader, value):
    try:
        return reader(value)
    except Exception:
        return None


readers = [pyjwt, pyjwt_rest, pyjwt_refresh, python_jose, werkzeug, by_hand, opaque, last_word, pyjwt_replace_token, replaced, fernet_like]
json.dump({f"python {r.__name__}": [ask(r, value) for value in asked["values"]] for r in readers}, sys.stdout)
