"""The key of the tests' App, and whether a word of an App's is its own.

https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
"""

from datetime import datetime
from functools import cache

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.fakes.github.faults import Reply, message


@cache
def private_key() -> str:
    """The key of the tests' App, as GitHub hands one out."""
    return _pem(_key())


@cache
def other_key() -> str:
    """A key of another App."""
    return _pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


@cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _pem(key: rsa.RSAPrivateKey) -> str:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, form, serialization.NoEncryption()).decode()


def refused(token: str, app_id: int, now: datetime) -> Reply | None:
    """Why GitHub does not take this word, whose clock shows `now`; `None` where it does."""
    second = now.timestamp()
    try:
        claims = jwt.decode(
            token,
            _key().public_key(),
            algorithms=["RS256"],
            options={"verify_exp": False, "verify_iat": False, "require": ["iat", "exp", "iss"]},
        )
    except jwt.InvalidTokenError:
        return message(401, "A JSON web token could not be decoded")
    if claims["iss"] != str(app_id):
        return message(404, "Integration not found")
    if claims["iat"] > second:
        return message(401, "'Issued at' claim ('iat') must be an Integer representing a time in the past")
    if not second < claims["exp"] <= second + 600:
        return message(401, "'Expiration time' claim ('exp') is too far in the future or past")
    return None
