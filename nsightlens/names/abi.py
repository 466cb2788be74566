"""The letters of the Itanium C++ ABI: built-in types, operators and standard abbreviations by their code in a symbol."""

from __future__ import annotations


class CannotRead(Exception):
    """The symbol is damaged, hostile, or uses what the demangler does not know."""


BUILTINS = {
    "v": "void", "w": "wchar_t", "b": "bool", "c": "char", "a": "signed char", "h": "unsigned char", "s": "short",
    "t": "unsigned short", "i": "int", "j": "unsigned int", "l": "long", "m": "unsigned long", "x": "long long",
    "y": "unsigned long long", "n": "__int128", "o": "unsigned __int128", "f": "float", "d": "double",
    "e": "long double", "g": "__float128", "z": "...",
    "Dh": "half", "Ds": "char16_t", "Di": "char32_t", "Du": "char8_t", "Da": "auto", "Dc": "decltype(auto)",
    "Dn": "decltype(nullptr)", "Dd": "decimal64", "De": "decimal128", "Df": "decimal32",
}
"""Code -> spelling. (DF16b, DF16_ and the like carry a number and are read apart.)"""

STANDARD = {
    "t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string", "i": "std::istream",
    "o": "std::ostream", "d": "std::iostream",
}
"""Letter after `S` -> what it abbreviates."""

QUALIFIERS = {"r": "__restrict__", "V": "volatile", "K": "const"}
"""Code -> word."""
MAX_QUALIFIERS = 100
"""Characters of qualifiers on one type: three may really stand there."""

OPERATORS = {
    "nw": ("new", 0), "na": ("new[]", 0), "dl": ("delete", 0), "da": ("delete[]", 0), "cl": ("()", 0), "ix": ("[]", 0),
    "ps": ("+", 1), "ng": ("-", 1), "ad": ("&", 1), "de": ("*", 1), "co": ("~", 1), "nt": ("!", 1), "pp": ("++", 0),
    "mm": ("--", 0), "pl": ("+", 2), "mi": ("-", 2), "ml": ("*", 2), "dv": ("/", 2), "rm": ("%", 2), "an": ("&", 2),
    "or": ("|", 2), "eo": ("^", 2), "aS": ("=", 2), "pL": ("+=", 2), "mI": ("-=", 2), "mL": ("*=", 2), "dV": ("/=", 2),
    "rM": ("%=", 2), "aN": ("&=", 2), "oR": ("|=", 2), "eO": ("^=", 2), "ls": ("<<", 2), "rs": (">>", 2),
    "lS": ("<<=", 2), "rS": (">>=", 2), "eq": ("==", 2), "ne": ("!=", 2), "lt": ("<", 2), "gt": (">", 2),
    "le": ("<=", 2), "ge": (">=", 2), "ss": ("<=>", 2), "aa": ("&&", 2), "oo": ("||", 2), "cm": (",", 2),
    "pm": ("->*", 2), "pt": ("->", 2), "qu": ("?", 3),
}
"""Code -> (symbol, operands in an expression; 0 where it is only a name, or written otherwise)."""
