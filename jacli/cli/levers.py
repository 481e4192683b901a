"""What makes one short-lived process quick: every measure of that kind, and nothing else. See docs/performance.md.

Each is measured against ``python -c "import torch"``, on which a cold answer depends most. The one that cannot be here
is ``os._exit`` in ``jacli.cli.main``; and nothing heavy is imported before it is needed, anywhere.
"""

from __future__ import annotations

import gc
import sys
import warnings
from types import ModuleType

#: Objects made before the collector looks: importing makes some 300,000, and no garbage. Saves a tenth.
_OBJECTS = 1_000_000

#: Formulas for the shapes of results of operators that are traced, not computed: only ``torch.compile``,
#: ``torch.export`` and the device called meta ask for them, and jacli uses none of these. Saves a sixth.
_DEFERRED = ("torch._meta_registrations",)


def pull() -> None:
    """Before anything is imported that is not needed to read the words."""
    gc.set_threshold(_OBJECTS)
    if not sys.warnoptions:
        warnings.simplefilter("ignore")  # what a library has to say to programmers
    for name in _DEFERRED:
        sys.modules.setdefault(name, _Deferred(name))


def complete() -> None:
    """Import now what ``pull`` put off, for code that may need all of torch."""
    for name in _DEFERRED:
        module = sys.modules.get(name)
        if isinstance(module, _Deferred):
            module.load()


class _Deferred(ModuleType):
    """Stands for a module that is imported when the first of its names is asked for."""

    def load(self) -> None:
        """Import the module in this one's place; who holds this one finds the same names here."""
        from importlib import import_module

        del sys.modules[self.__name__]
        self.__dict__.update(vars(import_module(self.__name__)))

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # inspect asks every module for its file
            raise AttributeError(name)
        self.load()
        return vars(self)[name]
