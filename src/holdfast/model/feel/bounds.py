"""How large an expression, its values and the work of evaluating it may become, and why.

Expressions come from users and run inside the engine, where one that does not end stops a
partition. Every evaluation has a budget of steps and of bytes. All operations draw from it: a step
for each part of the expression that is evaluated, as often as loops and calls repeat it; more for
an operation that takes longer, in proportion to the text and the items that it reads or makes; the
bytes of every string, list and context that is made. What was drawn is not given back. Every
bound is counted, never timed, so an expression ends at the same place on every machine.
"""

EXPRESSION_CHARS_MAX = 32_768  # a generous decision as text; parsing it takes about 0.5 s
EXPRESSION_SHORT_CHARS_MAX = 256  # nearly all are; in memory a character takes 150 bytes
EXPRESSIONS_CACHED_MAX = 4_096  # short ones kept once parsed: 40 KiB each at most, 160 MiB
EXPRESSIONS_LONG_CACHED_MAX = 32  # long ones: 5 MiB each at most, 160 MiB
NESTING_MAX = 100  # levels of one expression: compiled at 3 frames each, 300 of Python's 1,000
ITERATIONS_MAX = 16  # names of one `for`; each is a loop in the one before it
EVALUATION_NESTING_MAX = 300  # the same plus functions under way: at 2 frames, 600 of 1,000
STEPS_MAX = 1_000_000  # of one evaluation, at 0.1 us each: 0.1 s, less than a probe may wait
BYTES_MAX = 33_554_432  # made in one evaluation: 32 MiB, ten times the largest variables
VALUE_PARTS_MAX = 1_000_000  # items and entries of a value that is written as JSON
VALUE_NESTING_MAX = 100  # lists in lists; deeper ones are built by loops, not by people
TEXT_CHARS_MAX = 1_000_000  # one string; doubling it in a loop ends here
WARNINGS_MAX = 32  # sentences of one evaluation; a loop would repeat the same one
PATTERN_CHARS_MAX = 1_000  # of a regular expression
PATTERN_STEPS_MAX = 5_000  # of a regular expression once `{m,n}` is written out
PATTERNS_CACHED_MAX = 64  # regular expressions kept once read: 0.5 MiB each at most, 32 MiB
VALUE_CHARS_SHOWN = 60  # of a value, in a warning
DIGITS_MAX = 34  # of a number, as in IEEE 754 decimal128, which the specification names
EXPONENT_MAX = 6_144  # the same standard's
EXPRESSION_CHARS_SHOWN = 80  # of the expression, in an error message
