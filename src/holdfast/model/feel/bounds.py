"""How large an expression, its values and the work of evaluating it may become, and why.

Expressions come from users and run inside the engine, where one that does not end stops a
partition. Every bound is counted, never timed, so that a replay ends where the first run ended.
"""

EXPRESSION_CHARS_MAX = 32_768  # a generous decision as text; parsing it takes about 0.3 s
EXPRESSIONS_CACHED_MAX = 4_096  # parsed ones kept: about 10 KiB each, 40 MiB at the most
NESTING_MAX = 100  # levels of one expression: at 2 frames a level, 200 of Python's 1,000
ITERATIONS_MAX = 16  # names of one `for`; each is a loop in the one before it
EVALUATION_NESTING_MAX = 150  # the same plus the functions under way: at 3 frames, 450 of 1,000
WORK_MAX = 1_000_000  # items made or looked at in one evaluation: about 0.5 s
VALUE_NESTING_MAX = 100  # lists in lists; deeper ones are built by loops, not by people
TEXT_CHARS_MAX = 1_000_000  # one string; doubling it in a loop ends here
WARNINGS_MAX = 32  # sentences of one evaluation; a loop would repeat the same one
PATTERN_CHARS_MAX = 1_000  # of a regular expression
PATTERN_STEPS_MAX = 5_000  # of a regular expression once `{m,n}` is written out
DIGITS_MAX = 34  # of a number, as in IEEE 754 decimal128, which the specification names
EXPONENT_MAX = 6_144  # the same standard's
EXPRESSION_CHARS_SHOWN = 80  # of the expression, in an error message
