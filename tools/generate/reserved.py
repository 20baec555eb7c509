"""Reserved words of the target languages, and a specification whose names avoid them."""

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final

from tools.generate.text import snake_case
from tools.language.conditions import Bit, Flag, Since, Until
from tools.language.elements import Alternative, Choice, Item, Repeat
from tools.language.fields import Field
from tools.language.model import Message, Parameter, Part, Spec

__all__ = ["RESERVED", "distinct", "escaped", "identifier", "members"]

RESERVED: Final[Mapping[str, str]] = {
    "c++": """alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr
        const_cast continue co_await co_return co_yield decltype default delete do double dynamic_cast else enum
        explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
        nullptr operator or or_eq private protected public register reinterpret_cast requires return short signed sizeof
        static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
        union unsigned using virtual void volatile wchar_t while xor xor_eq""",
    "c#": """abstract as base bool break byte case catch char checked class const continue decimal default delegate do
        double else enum event explicit extern false finally fixed float for foreach goto if implicit in int interface
        internal is lock long namespace new null object operator out override params private protected public readonly
        ref return sbyte sealed short sizeof stackalloc static string struct switch this throw true try typeof uint
        ulong unchecked unsafe ushort using virtual void volatile while equals finalize get_type to_string
        get_hash_code memberwise_clone reference_equals""",
    "go": """break case chan const continue default defer else fallthrough for func go goto if import interface map
        package range return select struct switch type var read""",
    "java": """abstract assert boolean break byte case catch char class const continue default do double else enum
        extends final finally float for goto if implements import instanceof int interface long native new package
        private protected public return short static strictfp super switch synchronized this throw throws transient try
        void volatile while true false null get_class hash_code notify notify_all to_string wait clone equals
        finalize""",
    "javascript": """arguments await break case catch class const continue debugger default delete do else enum eval
        export extends false finally for function if implements import in instanceof interface let new null package
        private protected public return static super switch this throw true try typeof var void while with yield
        constructor prototype""",
    "lua": """and break do else elseif end false for function goto if in local nil not or repeat return then true until
        while""",
    "nim": """addr bind block cast concept converter defer discard distinct div elif except export finally func
        generic include iterator let macro method mixin mod nil object of out proc ptr raise ref result shl shr tuple
        type using var when""",
    "perl": """and cmp continue do else elsif eq eval for foreach ge given goto gt if last le local lt my ne new next no
        not or our package print redo require return sub undef unless until use when while xor can isa import does
        destroy autoload""",
    "php": """abstract and array as break callable case catch class clone const continue declare default die do echo
        else elseif empty enddeclare endfor endforeach endif endswitch endwhile eval exit extends final finally fn for
        foreach function global goto if implements include include_once instanceof insteadof interface isset list match
        namespace new or print private protected public readonly require require_once return static switch throw trait
        try unset use var while xor yield""",
    "python": """and as assert async await break class continue def del elif else except exec finally for from global
        if import in is lambda nonlocal not or pass print raise return try while with yield none true false self mro
        name value close from_bytes from_file from_io""",
    "ruby": """alias and begin break case class def defined do else elsif end ensure false for if in module next nil not
        or redo rescue retry return self super then true undef unless until when while yield send method hash freeze
        dup clone display extend inspect instance_eval instance_exec object_id tap then singleton_class""",
    "rust": """abstract as async await become box break const continue crate do dyn else enum extern false final fn for
        gen if impl in let loop macro match mod move mut override priv pub ref return self static struct super trait
        true try type typeof union unsafe unsized use virtual where while yield read""",
    "sql": """all analyse analyze and anti any array as asc asymmetric authorization between binary both case cast check
        collate collation column concurrently constraint create cross current_catalog current_date current_role
        current_schema current_time current_timestamp current_user default deferrable desc distinct do else end escape
        except exists false fetch filter for foreign freeze from full function grant group having ilike in initially
        inner intersect into is isnull join lateral leading left like limit localtime localtimestamp minus natural not
        notnull null offset on only or order outer overlaps percentile_cont placing primary references returning right
        rollback row rows select semi session_user set similar some start symmetric table tablesample then time to
        trailing true union unique unknown user using values variadic verbose when where window with""",
}
"""The words, in lower case with underscores; for languages with classes also the members of every object.

Those of SQL, PostgreSQL's and Spark's, are permitted: no SQL contains these names unquoted, and Arrow and Spark accept
any column name.
"""

_EXPRESSIONS: Final = "and or not true false"
"""Reserved words of Kaitai Struct's expressions."""
_OWN: Final = "io root parent raw_body"
_COMPILED: Final = [words for language, words in RESERVED.items() if language != "sql"]
_FIELD_WORDS: Final = frozenset(" ".join([*_COMPILED, _EXPRESSIONS, _OWN]).split()) - {"name", "value"}
"""Names that no field may have in a Kaitai Struct file, which is compiled to all of these languages."""
_MEMBER_WORDS: Final = frozenset(f"{RESERVED['python']} {RESERVED['lua']} class".split())
"""Names that no enum member may have: reserved words in the languages that use members unchanged."""
_OF_RUNTIMES: Final = """none true false self super string object exception kaitai_struct kaitai_stream error array map
    date integer number symbol function math byte_buffer int_enum enum_meta bytes_io system option result vec rc
    ref_cell box"""
_CLASS_WORDS: Final = frozenset(_OF_RUNTIMES.split())
"""Names that no type may have: names that the compiled files use themselves."""
_TOP: Final = frozenset({"tag", "body", "end", "text"})
"""The names in the reader of all messages, besides its parameters."""


Rule = Callable[[Any], Any]


def escaped(spec: Spec) -> Spec:
    """Return a specification for Kaitai Struct: names that are reserved in a target language get a suffix."""
    fields_of_all = {name for each in spec.structures() for e in each.elements for name in (e.name, *e.names)}
    rules = {
        "names": _adding("_field", _FIELD_WORDS),
        "members": _adding("_kind", _MEMBER_WORDS),
        "parameters": _adding("_option", _FIELD_WORDS | _TOP | fields_of_all),
        "classes": _adding("Type", _CLASS_WORDS),
    }
    found: Spec = _walk(spec, rules)
    return found


def _adding(suffix: str, words: Set[str]) -> Rule:
    """Return a renaming that adds a suffix to reserved words, and to names that end with it: names stay distinct."""

    def escape(name: Any) -> Any:
        if not isinstance(name, str):
            return name
        bare = name
        while bare.endswith(suffix):
            bare = bare.removesuffix(suffix)
        return name + suffix if snake_case(bare.replace(" ", "")) in words else name

    return escape


def _walk(value: Any, rules: Mapping[str, Rule]) -> Any:
    if isinstance(value, tuple):
        return tuple(_walk(each, rules) for each in value)
    if not is_dataclass(value) or isinstance(value, type):
        return value
    inside = {each.name: _walk(getattr(value, each.name), rules) for each in fields(value)}
    return replace(
        value, **inside | {key: rules[rule](inside[key]) for key, rule in _NAMES.get(type(value), {}).items()}
    )


_NAMES: Final[Mapping[type, Mapping[str, str]]] = {
    Field: {"name": "names", "length": "names", "part": "classes"},
    Flag: {"name": "parameters"},
    Since: {"name": "parameters"},
    Until: {"name": "parameters"},
    Bit: {"field": "names"},
    Repeat: {"name": "names", "count": "names"},
    Choice: {"name": "names"},
    Alternative: {"name": "members", "then": "classes"},
    Parameter: {"name": "parameters"},
    Item: {"named": "classes"},
    Part: {"name": "classes"},
    Message: {"name": "classes"},
}
"""The attributes of the model that hold names, and the rule for each."""


def identifier(words: str) -> str:
    """Return text as a name: lower case with underscores, a letter first, and ``value`` if nothing is left."""
    name = re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")
    return name if name and name[0].isalpha() else f"value_{name}".rstrip("_")


def members(meanings: Iterable[str]) -> list[str]:
    """Return the names of enum members in Kaitai Struct, from the meanings of the values."""
    return distinct(map(_adding("_kind", _MEMBER_WORDS), map(identifier, meanings)))


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Return the names, with a number appended to those that are taken or repeated."""
    seen, found = {*taken}, []
    for name in names:
        free, number = name, 2
        while free in seen:
            free, number = f"{name}_{number}", number + 1
        seen.add(free)
        found.append(free)
    return found
