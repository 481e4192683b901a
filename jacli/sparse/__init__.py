"""Large problems, in time and memory linear in the non-zeros.

One idea carries all of it: a ``Family`` is one formula and many rows. Equations of equal shape in a text are one,
``{x[i+1] - x[i] for i in 0:n-1}`` is one, a slice expression ``x[1:] - x[:-1]`` is one. A family is evaluated once
and differentiated once, for all its rows.
"""
