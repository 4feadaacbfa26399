"""Expressions as people write them, ``weight / (height / 100) ** 2`` or ``sex == 'f' and age >= 12``.

A grammar of our own reads them: numbers, text in quotes, columns by name (any name in backticks), ``+ - * / **``, comparisons,
``and or not``, ``in (...)``, ``is missing``, and the functions log, exp, sqrt, abs, min, max, round (half to even) and floor.
Nothing else can be said, so nothing else can be run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, NoReturn

from .._text import listed
from ..exceptions import ParameterTypeError
from .conditions import COMPARISONS, AllOf, Among, AnyOf, Comparison, Missing, Not, Truth
from .tree import EXTREMES, FUNCTIONS, RESERVED, TRUTHS, Call, Column, Expression, Negative, Number, Power, Product, Sum, Text
from .values import ExpressionError, ValueKind, Values

__all__ = ["Expression", "ExpressionError", "ValueKind", "Values", "parse_expression"]

_LONGEST = 20_000  # characters
_DEEPEST = 32  # parentheses, functions and signs inside one another
_TOKEN = re.compile(
    r"""\s*(?: (?P<number> (?:\d+\.?\d*|\.\d+) (?:[eE][+-]?\d+)? )
             | (?P<text> '[^']*' | "[^"]*" )
             | (?P<quoted> `[^`]+` )
             | (?P<name> [^\W\d]\w* )
             | (?P<sign> \*\*|==|!=|<=|>=|[-+*/()<>,=] )
             | (?P<end> \Z ) )""",
    re.VERBOSE,
)


def parse_expression(text: str) -> Expression:
    """Read an expression over columns.

    Parameters
    ----------
    text : str
        Such as ``"weight / (height / 100) ** 2"``.

    Returns
    -------
    Expression
        Has ``columns``, the names of the columns it needs, and ``evaluate(frame)``.

    Raises
    ------
    ExpressionError
        With the text and the place where it cannot be read.

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> bmi = parse_expression("weight / (height / 100) ** 2")
    >>> sorted(bmi.columns)
    ['height', 'weight']
    >>> frame = nw.from_native(pl.DataFrame({"weight": [50.0, 60.0], "height": [100, None]}))
    >>> bmi.evaluate(frame)
    Values(kind='numbers', values=array([50., nan]), known=array([ True, False]))
    >>> parse_expression("weight / (height")
    Traceback (most recent call last):
    otimpute.knowledge.values.ExpressionError: expected ')', found the end
        weight / (height
                        ^
    """
    if not isinstance(text, str):
        raise ParameterTypeError("an expression", text, 'text such as "weight / (height / 100) ** 2"')
    return _Parser(text, tokens_of(text)).whole()


class Token(NamedTuple):
    """A piece of an expression."""

    kind: str
    text: str
    position: int


def tokens_of(text: str) -> list[Token]:
    """The pieces that an expression consists of; the last one is its end."""
    if len(text) > _LONGEST:
        raise ExpressionError(text[:80] + "...", f"an expression of {len(text):,} characters; at most {_LONGEST:,} are read")
    tokens: list[Token] = []
    place = 0
    while not tokens or tokens[-1].kind != "end":
        match = _TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            place += len(text[place:]) - len(text[place:].lstrip())
            raise ExpressionError(text, _stray(text[place]), place)
        tokens.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        place = match.end()
    return tokens


def _stray(character: str) -> str:
    if character in "'\"`":
        return f"a {character} that is never closed"
    return f"unexpected {character!r}; names with other characters than letters, digits and _ stand in backticks: `net income`"


class _Parser:
    """One method per level of the grammar, each of which leaves its place behind what it has read."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.place, self.depth = text, tokens, 0, 0

    @property
    def next(self) -> Token:
        return self.tokens[self.place]

    def whole(self) -> Expression:
        expression = self.alternatives()
        if self.next.kind != "end":
            advice = "; use == to compare" if self.next.text == "=" else ""
            self.fail(f"expected an operator or the end, found {self.found()}{advice}")
        return expression

    def alternatives(self) -> Expression:
        return self.several("or", AnyOf, lambda: self.several("and", AllOf, self.negation))

    def several(
        self, word: str, node: Callable[[tuple[Expression, ...]], Expression], part: Callable[[], Expression]
    ) -> Expression:
        parts = [part()]
        while self.takes(word):
            parts.append(part())
        return node(tuple(parts)) if len(parts) > 1 else parts[0]

    def negation(self) -> Expression:
        if self.takes("not"):
            return Not(self.nested(self.negation))
        return self.comparison()

    def comparison(self) -> Expression:
        sides, signs = [self.sum()], []
        while self.next.kind == "sign" and self.next.text in COMPARISONS:
            signs.append(self.advance().text)
            sides.append(self.sum())
        if signs:  # 0 <= a < b is 0 <= a and a < b
            pairs = tuple(Comparison(sign, *pair) for sign, *pair in zip(signs, sides, sides[1:], strict=False))
            return AllOf(pairs) if len(pairs) > 1 else pairs[0]
        if self.takes("is"):
            inverted = self.takes("not")
            self.expect("missing")
            return Not(Missing(sides[0])) if inverted else Missing(sides[0])
        if self.next.text == "not" and self.tokens[self.place + 1].text == "in":
            self.advance()
            return Not(self.among(sides[0]))
        return self.among(sides[0]) if self.next.text == "in" else sides[0]

    def among(self, operand: Expression) -> Expression:
        self.expect("in")
        self.expect("(")
        choices = [self.choice()]
        while self.takes(","):
            if self.next.text == ")":
                break
            choices.append(self.choice())
        self.expect(")")
        return Among(operand, tuple(choices))

    def choice(self) -> Expression:
        if self.takes("-"):
            return Negative(self.nested(self.choice))
        if self.next.kind not in ("number", "text") and self.next.text not in TRUTHS:
            self.fail(f"expected a number or text in quotes, found {self.found()}")
        return self.atom()

    def sum(self) -> Expression:
        return self.chain({"+": 1, "-": -1}, Sum, self.product)

    def product(self) -> Expression:
        return self.chain({"*": 1, "/": -1}, Product, self.unary)

    def chain(
        self,
        signs: dict[str, int],
        node: Callable[[tuple[Expression, ...], tuple[int, ...]], Expression],
        part: Callable[[], Expression],
    ) -> Expression:
        parts, read = [part()], [1]
        while self.next.kind == "sign" and self.next.text in signs:
            read.append(signs[self.advance().text])
            parts.append(part())
        return node(tuple(parts), tuple(read)) if len(parts) > 1 else parts[0]

    def unary(self) -> Expression:
        if self.takes("-"):
            return Negative(self.nested(self.unary))
        base = self.atom()
        return Power(base, self.nested(self.unary)) if self.takes("**") else base

    def atom(self) -> Expression:
        token = self.next
        if token.kind == "number":
            number = float(self.advance().text)
            if number == float("inf"):
                self.place -= 1
                self.fail("this number is too large")
            return Number(number)
        if token.kind == "text":
            return Text(self.advance().text[1:-1])
        if token.kind == "quoted":
            return Column(self.advance().text[1:-1])
        if self.takes("("):
            inside = self.nested(self.alternatives)
            self.expect(")")
            return inside
        if token.kind != "name" or (token.text in RESERVED and token.text not in TRUTHS):
            self.fail(f"expected a number, a column or '(', found {self.found()}")
        self.advance()
        if token.text in TRUTHS:
            return Truth(TRUTHS[token.text])
        return self.call(token) if self.next.text == "(" and self.next.kind == "sign" else Column(token.text)

    def call(self, name: Token) -> Expression:
        if name.text not in FUNCTIONS:
            self.place -= 1
            self.fail(f"there is no function {name.text!r}; there are {listed(list(FUNCTIONS))}")
        self.advance()
        arguments = [self.nested(self.alternatives)]
        while self.takes(","):
            arguments.append(self.nested(self.alternatives))
        if (len(arguments) > 1) != (name.text in EXTREMES):
            self.fail(
                f"{name.text} takes {'two or more values' if name.text in EXTREMES else 'one value'}, got {len(arguments)}"
            )
        self.expect(")")
        return Call(name.text, tuple(arguments))

    def nested(self, part: Callable[[], Expression]) -> Expression:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} parentheses, functions or signs inside one another")
        inside = part()
        self.depth -= 1
        return inside

    def advance(self) -> Token:
        self.place += 1
        return self.tokens[self.place - 1]

    def takes(self, text: str) -> bool:
        """Go past a word or sign if it is next."""
        is_next = self.next.kind in ("name", "sign") and self.next.text == text
        self.place += is_next
        return is_next

    def expect(self, text: str) -> None:
        if not self.takes(text):
            self.fail(f"expected {text!r}, found {self.found()}")

    def found(self) -> str:
        return repr(self.next.text) if self.next.text else "the end"

    def fail(self, problem: str) -> NoReturn:
        raise ExpressionError(self.text, problem, self.next.position)
