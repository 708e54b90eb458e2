"""What is kept of a person: a fingerprint of the word that gives them their rights, never the word itself."""

import hashlib


def owner_hash(owner: str) -> str:
    """What names a person without giving their rights: SHA-256 of their word, in hexadecimal."""
    return hashlib.sha256(owner.encode()).hexdigest()
