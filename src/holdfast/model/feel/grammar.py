"""The grammar of FEEL expressions, for lark's LALR parser.

Three things need the lexer's help, because one token of look-ahead cannot tell them apart:

- `[]` is one token, since `]` may also begin a range (`]1..5[`);
- `[` that ends a range is told from one that begins a filter by what follows it;
- built-in functions with spaces in their names are tokens when `(` follows them.

`if`, `for`, `some`, `every` and `function` reach as far to the right as they can, and may stand
wherever an operand may: the parser shifts in those conflicts, which is what that means.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lark import Lark

GRAMMAR = r"""
?start: expression
?expression: disjunction
?disjunction: conjunction (OR conjunction)*
?conjunction: comparison (AND comparison)*
?comparison: additive
    | comparison COMPARE additive                   -> compare
    | comparison BETWEEN additive AND additive      -> between
    | comparison IN test                            -> membership
    | comparison IN LPAR tests ")"                  -> memberships
    | comparison INSTANCE_OF type_name                   -> instance_of
?additive: multiplicative (PLUS_MINUS multiplicative)*
?multiplicative: power (TIMES power)*
?power: unary (POWER unary)*
?unary: postfix
    | MINUS unary                                   -> negate
    | IF expression THEN expression ELSE expression -> if_else
    | FOR iterations RETURN expression              -> for_each
    | SOME iterations SATISFIES expression          -> quantified
    | EVERY iterations SATISFIES expression         -> quantified
    | FUNCTION "(" [parameter ("," parameter)*] ")" expression -> function
?postfix: primary
    | postfix "." KEY                               -> path
    | postfix "." BACKTICKED                        -> path
    | postfix "." PROPERTY                          -> path
    | postfix LSQB expression "]"                   -> filtered
    | postfix LPAR arguments ")"                    -> call
    | postfix LPAR ")"                              -> call
?primary: NUMBER                                    -> number
    | STRING                                        -> string
    | AT_STRING                                     -> temporal
    | TRUE                                          -> constant
    | FALSE                                         -> constant
    | NULL                                          -> constant
    | NAME                                          -> name
    | BACKTICKED                                    -> name
    | FUNCTION_NAME                                 -> name
    | "(" expression ")"
    | LPAR COMPARE additive ")"                     -> unary_range
    | EMPTY_LIST                                    -> list_of
    | LSQB expression ("," expression)* "]"         -> list_of
    | LBRACE [entry ("," entry)*] "}"               -> context
    | (LSQB | LPAR | RSQB) expression ".." expression (RSQB | RPAR | RANGE_END) -> range_of

entry: key ":" expression
key: KEY+ | STRING | BACKTICKED
arguments: argument ("," argument)*
?argument: expression | words ":" expression        -> named
words: NAME+
parameter: NAME [":" type_name]
iterations: iteration ("," iteration)*
iteration: (NAME | BACKTICKED) IN expression [".." expression]

test: COMPARE additive | additive
tests: unary_test ("," test)* | expression ("," test)+ -> tests
unary_test: COMPARE additive                        -> test
type_name: TYPE
    | TYPE_OPEN type_name ("," type_name)* COMPARE [ARROW type_name]
    | TYPE_OPEN COMPARE ARROW type_name
    | CONTEXT_OPEN field ("," field)* COMPARE
field: KEY ":" type_name

OR: /or\b/
AND: /and\b/
BETWEEN: /between\b/
IN: /in\b/
INSTANCE_OF: /instance\s+of\b/
IF: /if\b/
THEN: /then\b/
ELSE: /else\b/
FOR: /for\b/
RETURN: /return\b/
SOME: /some\b/
EVERY: /every\b/
SATISFIES: /satisfies\b/
FUNCTION: /function\b/
TRUE: /true\b/
FALSE: /false\b/
NULL: /null\b/

COMPARE: /<=|>=|!=|=|<|>/
PLUS_MINUS: /[+-]/
MINUS: "-"
TIMES: /\*(?!\*)|\/(?![\/*])/
POWER: "**"
ARROW: "->"
LPAR: "("
RPAR: ")"
LSQB: "["
RSQB: "]"
LBRACE: "{"
EMPTY_LIST.3: /\[(?:\s|\/\/[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*\]/
RANGE_END.3: /\[(?=\s*(?:$|[)\],}=!<>]|(?:and|or)\b(?!\s*\()|(?:BEHIND)\b))/

NUMBER: /(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w)/
STRING: /"(?:[^"\\]|\\[\s\S])*"/
AT_STRING: /@\s*"(?:[^"\\]|\\[\s\S])*"/
BACKTICKED: /`[^`]+`/
KEY: /(?:FIRST)(?:REST)*/
NAME: /(?!(?:RESERVED)\b)(?:FIRST)(?:REST)*/
PROPERTY.3: /(?:time\s+offset|start\s+included|end\s+included)\b/
FUNCTION_NAME.3: /(?:FUNCTION_NAMES)(?=\s*\()/
TYPE: /(?:date\s+and\s+time|(?:days\s+and\s+time|years\s+and\s+months)\s+duration)\b|[^\W\d]\w*/
TYPE_OPEN.3: /(?:list|range|function)\s*</
CONTEXT_OPEN.3: /context\s*</

COMMENT: /\/\/[^\n]*|\/\*(?:[^*]|\*(?!\/))*\*\//
SPACE: /\s+/
%ignore COMMENT
%ignore SPACE
"""

FIRST_CHARACTER = r"[^\W\d]|[\U00010000-\U000EFFFF]"  # of a name: a letter, or beyond the BMP
CHARACTER = r"\w|[\U00010000-\U000EFFFF]"
BEHIND_RANGE = r"then|else|return|satisfies|\.\s*(?:start|end)"  # words that may follow a range
RESERVED = (
    "true", "false", "null", "and", "or", "if", "then", "else", "for", "in", "return", "some",
    "every", "satisfies", "between", "function",
)  # fmt: skip


@lru_cache(maxsize=1)
def parser(function_names: Iterable[str], transformer: Any) -> "Lark":
    """The parser, built once; lark is imported only then, so that importing holdfast is quick."""
    from lark import Lark

    spaced = sorted(function_names, key=len, reverse=True)
    pattern = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in spaced)
    grammar = GRAMMAR.replace("FUNCTION_NAMES", pattern).replace("RESERVED", "|".join(RESERVED))
    grammar = grammar.replace("BEHIND", BEHIND_RANGE)
    grammar = grammar.replace("FIRST", FIRST_CHARACTER).replace("REST", CHARACTER)
    return Lark(grammar, parser="lalr", lexer="contextual", transformer=transformer)
