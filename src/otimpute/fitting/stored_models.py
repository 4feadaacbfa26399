"""Models in model files: one of some classes, or one for each block of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._stored import Array, Kind, Place
from .within_predictors import Block, BlockModel

_CENTRE = Array("columns", np.float64)
_PLACES = Array("C", np.int64, at_least=0)
_FIELDS = {"columns", "targets", "model"}
_OF_THE_TABLE = ("table", "coordinates")  # sizes that blocks share


@dataclass(frozen=True)
class ModelOf(Kind):
    """A model of a kind, or a `BlockModel` of such."""

    kind: Kind

    def pack(self, value: Any, place: Place) -> Any:
        """What JSON holds of the model."""
        if not isinstance(value, BlockModel):
            return self.kind.pack(value, place)
        if any(getattr(model, "needs_code", False) for model in value.models):
            raise TypeError(
                f"{place.name}: predictors made several fits of a model of your own, of which files hold only one; pickle the "
                "fitted imputer"
            )
        parts = zip(value.blocks, value.models, strict=True)
        packed = [self._pack_block(block, model, place.at(k)) for k, (block, model) in enumerate(parts)]
        return {"centre": _CENTRE.pack(value.centre, place.at("centre")), "blocks": packed}

    def _pack_block(self, block: Block, model: Any, place: Place) -> dict[str, Any]:
        return {
            "columns": _PLACES.pack(block.columns, place.at("columns")),
            "targets": _PLACES.pack(block.targets, place.at("targets")),
            "model": self.kind.pack(model, place.at("model")),
        }

    def unpack(self, tree: Any, place: Place) -> Any:
        """The model, or an error."""
        if not isinstance(tree, dict) or tree.keys() != {"centre", "blocks"}:
            return self.kind.unpack(tree, place)
        centre = _CENTRE.unpack(tree["centre"], place.at("centre"))
        if not isinstance(tree["blocks"], list):
            place.fail("must have a list of blocks")
        parts = [self._unpack_block(each, place.at(k)) for k, each in enumerate(tree["blocks"])]
        try:
            return BlockModel(centre, [block for block, _ in parts], [model for _, model in parts])
        except ValueError as error:
            place.fail(f"is no BlockModel: {error}")

    def _unpack_block(self, tree: Any, place: Place) -> tuple[Block, Any]:
        if not isinstance(tree, dict) or tree.keys() != _FIELDS:
            place.fail(f"must have {', '.join(sorted(_FIELDS))}")
        columns, targets = (_PLACES.unpack(tree[name], place.at(name, record=True)) for name in ("columns", "targets"))
        if not len(targets) <= len(columns) > 0:
            place.fail("has no columns")
        alone = place.inside()
        alone.sizes.update({name: place.sizes[name] for name in _OF_THE_TABLE if name in place.sizes}, columns=len(columns))
        model = self.kind.unpack(tree["model"], alone.at("model"))
        if getattr(model, "needs_code", False):
            place.fail("is made of code that no file holds")
        for check in alone.at_the_end:
            check()
        return Block(targets, columns), model
