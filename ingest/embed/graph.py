"""The bundled model's network as an ONNX graph, written in the fused operators that ONNX Runtime has for BERT.

The architecture is BERT (https://arxiv.org/abs/1810.04805) with the mean of its tokens as the sentence
(https://arxiv.org/abs/1908.10084). Operators: https://onnx.ai/onnx/operators and, of the domain `com.microsoft`,
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Arrays = Mapping[str, npt.NDArray[Any]]

IDS, MASK, VECTORS = "input_ids", "attention_mask", "vectors"
_FUSED = "com.microsoft"
_EPSILON = 1e-12
_SMALL = 1024
"""Bytes up to which an array stands in the graph itself."""


def network(weights: Arrays, layers: int, heads: int) -> tuple[bytes, Arrays]:
    """Return the serialised graph, and by name the arrays that it expects beside it.

    Its inputs are `input_ids` and `attention_mask`, int64 of shape (texts, tokens); its output `vectors` is float32 of
    shape (texts, dimensions), of unit length. `weights` are named as transformers' BertModel names them.
    """
    from onnx import TensorProto, helper, numpy_helper

    arrays: dict[str, npt.NDArray[Any]] = {}
    nodes: list[Any] = []

    def constant(name: str, array: npt.NDArray[Any]) -> str:
        arrays[name] = np.ascontiguousarray(array)
        return name

    def weight(name: str) -> str:
        return constant(name, weights[name])

    def op(kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        output = f"{kind}_{len(nodes)}"
        nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output

    def linear(x: str, layer: str) -> str:
        # Stored as (out, in): multiplied as it is, so that it needs no copy.
        return op("FusedMatMul", x, weight(f"{layer}.weight"), domain=_FUSED, transB=1)

    def normalised(x: str, skip: str, dense: str, norm: str) -> str:
        """Return LayerNorm(dense(x) + skip)."""
        y = linear(x, dense)
        gamma, beta, bias = weight(f"{norm}.weight"), weight(f"{norm}.bias"), weight(f"{dense}.bias")
        return op("SkipLayerNormalization", y, skip, gamma, beta, bias, domain=_FUSED, epsilon=_EPSILON)

    # Every text is one segment, so that the segment's embedding is the same for each place.
    place = (
        weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    zero, one, two = (constant(str(n), np.array([n])) for n in range(3))
    words = op("Gather", weight("embeddings.word_embeddings.weight"), IDS)
    places = op("Slice", constant("places", place), zero, op("Shape", IDS, start=1, end=2))
    norm = "embeddings.LayerNorm"
    x = op(
        "LayerNormalization",
        op("Add", words, places),
        weight(f"{norm}.weight"),
        weight(f"{norm}.bias"),
        epsilon=_EPSILON,
    )
    seen = op("Cast", MASK, to=TensorProto.INT32)
    for n in range(layers):
        layer = f"encoder.layer.{n}"
        parts = [f"{layer}.attention.self.{part}" for part in ("query", "key", "value")]
        inwards = constant(f"{layer}.qkv.weight", np.vstack([weights[f"{part}.weight"] for part in parts]).T)
        bias = constant(f"{layer}.qkv.bias", np.hstack([weights[f"{part}.bias"] for part in parts]))
        y = op("Attention", x, inwards, bias, seen, domain=_FUSED, num_heads=heads)
        x = normalised(y, x, f"{layer}.attention.output.dense", f"{layer}.attention.output.LayerNorm")
        y = linear(x, f"{layer}.intermediate.dense")
        y = op("BiasGelu", y, weight(f"{layer}.intermediate.dense.bias"), domain=_FUSED)
        x = normalised(y, x, f"{layer}.output.dense", f"{layer}.output.LayerNorm")
    counted = op("Unsqueeze", op("Cast", MASK, to=TensorProto.FLOAT), two)
    # The sum points where the mean does.
    total = op("ReduceSum", op("Mul", x, counted), one, keepdims=0)
    length = op("ReduceL2", total, one, keepdims=1)
    nodes.append(helper.make_node("Div", [total, length], [VECTORS]))

    def declared(name: str, array: npt.NDArray[Any]) -> Any:
        if array.nbytes <= _SMALL:
            return numpy_helper.from_array(array, name)
        tensor = TensorProto(
            name=name, dims=array.shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL
        )
        tensor.external_data.add(key="location", value="given to the session")
        return tensor

    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in (IDS, MASK)
    ]
    outputs = [helper.make_tensor_value_info(VECTORS, TensorProto.FLOAT, ["texts", place.shape[1]])]
    graph = helper.make_graph(
        nodes, "sentence", inputs, outputs, [declared(*item) for item in arrays.items()]
    )
    versions = [helper.make_opsetid("", 18), helper.make_opsetid(_FUSED, 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=8)
    beside = {name: array for name, array in arrays.items() if array.nbytes > _SMALL}
    return model.SerializeToString(), beside
