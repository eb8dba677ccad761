"""A model as an ONNX graph in double precision, and converters for pipelines by skl2onnx.

A model fitted on an array has one input ``X``; a model of ``psilearn fit`` has one input per column, numbers as doubles
(nan where missing) and categories as strings ("missing" where missing). Outputs: ``label``, ``scores`` and, where the
model may abstain, ``abstains``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.extras import optional
from ...rules.attributes import Attribute
from .formula import OTHER, Column, ExportError, Formula, KernelSum, Linear, RuleSum

OPSET, IR_VERSION = 19, 9


class Node(NamedTuple):
    """One operation of a graph."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


class Graph:
    """Operations in the order of their computation, and the constants they use; names start with ``prefix``."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.nodes: list[Node] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        """Return the name of a constant."""
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = np.asarray(values, dtype=dtype)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Return the name of the result of an operation."""
        name = f"{self.prefix}n{len(self.nodes)}"
        outputs = [name, f"{name}i"] if op == "TopK" else [name]  # the values, and the places that nobody asks for
        self.nodes.append(Node(op, list(inputs), outputs, attributes))
        return name

    def number(self, flags: str) -> str:
        """Return flags as doubles."""
        return self.add("Cast", flags, to=11)  # 11 is double


def to_onnx(formula: Formula) -> bytes:
    """Return the model as the bytes of an ONNX file."""
    onnx = optional("onnx", "export", "Export to ONNX")
    from onnx import TensorProto, helper, numpy_helper

    graph = Graph()
    double, string = TensorProto.DOUBLE, TensorProto.STRING
    if formula.is_matrix:
        inputs = [helper.make_tensor_value_info("X", double, [None, len(formula.columns)])]
        columns = [graph.add("Gather", "X", graph.constant([j], np.int64), axis=1) for j in range(len(formula.columns))]
    else:
        columns = [column.name for column in formula.columns]
        kinds = [double if column.levels is None else string for column in formula.columns]
        inputs = [helper.make_tensor_value_info(name, kind, [None, 1]) for name, kind in zip(columns, kinds)]
    label, scores, abstains = build(graph, formula, columns, "X" if formula.is_matrix else None)
    kind, _ = label_type(formula)
    outputs: list[tuple[str, int, list[int | None], str]] = [
        ("label", kind, [None], label),
        ("scores", double, [None, formula.scores.intercept.size], scores),
    ]
    if abstains:
        outputs.append(("abstains", TensorProto.BOOL, [None], abstains))
    for name, _, _, made in outputs:
        graph.nodes.append(Node("Identity", [made], [name], {}))
    nodes = [helper.make_node(node.op, node.inputs, node.outputs, **node.attributes) for node in graph.nodes]
    infos = [helper.make_tensor_value_info(name, what, shape) for name, what, shape, _ in outputs]
    constants = [numpy_helper.from_array(values, name) for name, values in graph.constants.items()]
    whole = helper.make_graph(nodes, "psilearn", inputs, infos, constants)
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(whole, opset_imports=opsets, ir_version=IR_VERSION, producer_name="psilearn")
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


def label_type(formula: Formula) -> tuple[int, NDArray[Any]]:
    """ONNX's number for the type of the labels, and the labels in that type."""
    kind = formula.classes.dtype.kind
    if kind in "iu":
        return 7, formula.classes.astype(np.int64)
    if kind == "b":
        return 9, formula.classes
    if kind == "f":
        return 11, formula.classes
    return 8, formula.classes.astype(object)


def build(graph: Graph, formula: Formula, columns: list[str], matrix: str | None) -> tuple[str, str, str | None]:
    """Add the whole formula; return the names of the labels, scores and, maybe, where the model abstains."""
    if isinstance(formula.scores, RuleSum):
        scores = _rule_scores(graph, formula, formula.scores, columns)
    else:
        X = matrix or _features(graph, formula, columns)
        scores = _scores(graph, formula.scores, X)
    if formula.tie:
        is_tie = graph.add("Less", graph.add("Abs", scores), graph.constant(formula.tie))
        scores = graph.add("Where", is_tie, graph.constant(formula.tie_score), scores)
    if formula.classes.size == 2:
        flat = graph.add("Reshape", scores, graph.constant([-1], np.int64))
        place = graph.add("Cast", graph.add("Greater", flat, graph.constant(0.0)), to=7)
        lead = graph.add("Abs", flat)
    else:
        place = graph.add("ArgMax", scores, axis=1, keepdims=0)
        lead = ""
    label = graph.add("Gather", graph.constant(label_type(formula)[1], None), place, axis=0)
    if formula.threshold is None:
        return label, scores, None
    return label, scores, graph.add("LessOrEqual", lead or _lead(graph, scores), graph.constant(formula.threshold))


def _lead(graph: Graph, scores: str) -> str:
    """The largest score less the second."""
    name = graph.add("TopK", scores, graph.constant([2], np.int64), axis=1, largest=1, sorted=1)
    first, second = (graph.add("Gather", name, graph.constant(at, np.int64), axis=1) for at in (0, 1))
    return graph.add("Sub", first, second)


def _filled(graph: Graph, column: Column, values: str, fill: float) -> str:
    """A number column with codes and missing values replaced."""
    for code in column.codes:
        is_code = graph.add("Equal", values, graph.constant(code))
        values = graph.add("Where", is_code, graph.constant(np.nan), values)
    if np.isnan(fill):
        return values
    return graph.add("Where", graph.add("IsNaN", values), graph.constant(fill), values)


def _features(graph: Graph, formula: Formula, columns: list[str]) -> str:
    """The standardised features, side by side."""
    parts = []
    for feature in formula.features:
        column, values = formula.columns[feature.column], columns[feature.column]
        if column.levels is None:
            parts.append(_filled(graph, column, values, column.fill))
        elif feature.level != OTHER:
            parts.append(graph.number(graph.add("Equal", values, graph.constant([feature.level], object))))
        else:
            known = [level for level in column.levels if level != OTHER]
            flags = [graph.number(graph.add("Equal", values, graph.constant([level], object))) for level in known]
            rest = graph.constant([[1.0]])
            for flag in flags:
                rest = graph.add("Sub", rest, flag)
            parts.append(rest)
    X = graph.add("Concat", *parts, axis=1)
    mean, scale = (graph.constant([[getattr(f, what) for f in formula.features]]) for what in ("mean", "scale"))
    return graph.add("Div", graph.add("Sub", X, mean), scale)


def _scores(graph: Graph, scores: Linear | KernelSum, X: str) -> str:
    if isinstance(scores, KernelSum):
        X = _kernel(graph, scores, X)
    product = graph.add("MatMul", X, graph.constant(scores.coef.T))
    return graph.add("Add", product, graph.constant(scores.intercept[None]))


def _kernel(graph: Graph, scores: KernelSum, X: str) -> str:
    """The kernel values between rows and support vectors, both centred where only their distance matters."""
    kernel, Z = scores.kernel, scores.support
    if kernel.kind == "rbf":
        centre = Z.mean(axis=0)
        Z = Z - centre
        X = graph.add("Sub", X, graph.constant(centre[None]))
    if kernel.kind in ("poly", "sigmoid"):
        Z = Z * kernel.gamma  # not a node of its own: runtimes fuse it into the product in single precision
    products = graph.add("MatMul", X, graph.constant(Z.T))
    if kernel.kind == "linear":
        return products
    if kernel.kind == "rbf":
        squares = graph.add("ReduceSum", graph.add("Mul", X, X), graph.constant([1], np.int64), keepdims=1)
        both = graph.add("Add", squares, graph.constant((Z**2).sum(axis=1)[None]))
        distance = graph.add("Sub", both, graph.add("Mul", products, graph.constant(2.0)))
        at_least_0 = graph.add("Max", distance, graph.constant(0.0))
        return graph.add("Exp", graph.add("Mul", at_least_0, graph.constant(-float(kernel.gamma))))
    shifted = graph.add("Add", products, graph.constant(float(kernel.coef0)))
    if kernel.kind == "poly":
        return graph.add("Pow", shifted, graph.constant(float(kernel.degree)))
    return graph.add("Tanh", shifted)


def _rule_scores(graph: Graph, formula: Formula, rules: RuleSum, columns: list[str]) -> str:
    """Answers to all questions, then how many each rule has as asked for: it holds where none is missing."""
    questions = list(dict.fromkeys(attribute for condition in rules.conditions for attribute, _ in condition))
    shape = graph.add("Shape", columns[0])
    ones = graph.add("ConstantOfShape", graph.add("Slice", shape, *_first(graph)))
    row = graph.add("Unsqueeze", graph.number(graph.add("Equal", ones, ones)), graph.constant([1], np.int64))
    if not questions:
        return graph.add("MatMul", row, graph.constant((rules.weights.sum(axis=0) + rules.intercept)[None]))
    answers = [graph.number(_answer(graph, formula.columns, columns, question)) for question in questions]
    place = {question: at for at, question in enumerate(questions)}
    signs, needed = np.zeros((len(questions), len(rules.conditions))), np.zeros((1, len(rules.conditions)))
    for at, condition in enumerate(rules.conditions):
        for attribute, answer in condition:
            signs[place[attribute], at] = 1.0 if answer else -1.0
            needed[0, at] += float(answer)
    counted = graph.add("MatMul", graph.add("Concat", *answers, axis=1), graph.constant(signs))
    holds = graph.number(graph.add("GreaterOrEqual", counted, graph.constant(needed - 0.5)))
    total = graph.add("MatMul", holds, graph.constant(rules.weights))
    return graph.add("Add", total, graph.constant(rules.intercept[None]))


def _first(graph: Graph) -> tuple[str, str]:
    return graph.constant([0], np.int64), graph.constant([1], np.int64)


def _answer(graph: Graph, columns: tuple[Column, ...], names: list[str], attribute: Attribute) -> str:
    column, values = columns[attribute.feature], names[attribute.feature]
    is_text = column.levels is not None
    if attribute.kind == "missing":
        if is_text:
            return graph.add("Equal", values, graph.constant(["missing"], object))
        return graph.add("IsNaN", _filled(graph, column, values, np.nan))
    if attribute.kind == "above":
        return graph.add("Greater", _filled(graph, column, values, attribute.fill), graph.constant(attribute.value))
    value = 1.0 if attribute.kind == "flag" else attribute.value
    if is_text != isinstance(value, str):
        raise ExportError(f"Column '{column.name}' mixes numbers and words; ONNX needs it to be one of them.")
    return graph.add("Equal", values, graph.constant([value], object if is_text else np.float64))


def register() -> None:
    """Teach skl2onnx our classifiers, so that ``skl2onnx.to_onnx`` converts pipelines that hold them."""
    skl2onnx = optional("skl2onnx", "export", "Conversion of pipelines")
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    from ...estimators import margin, reject, rules

    classes: list[type] = [
        margin.SVMClassifier,
        margin.PsiClassifier,
        margin.TruncatedHingeClassifier,
        margin.MarginClassifier,
    ]
    classes += [reject.RejectClassifier, rules.LPBoostClassifier, rules.L0BoostClassifier, rules.SlipperClassifier]

    def shapes(operator: Any) -> None:
        formula = Formula.of(operator.raw_operator)
        is_text = label_type(formula)[0] == 8
        operator.outputs[0].type = (StringTensorType if is_text else Int64TensorType)([None])
        operator.outputs[1].type = DoubleTensorType([None, formula.scores.intercept.size])

    def convert(scope: Any, operator: Any, container: Any) -> None:
        formula = Formula.of(operator.raw_operator)
        graph = Graph(scope.get_unique_variable_name("psilearn") + "_")
        X = graph.add("Cast", operator.inputs[0].full_name, to=11)
        columns = [graph.add("Gather", X, graph.constant([j], np.int64), axis=1) for j in range(len(formula.columns))]
        label, scores, _ = build(graph, formula, columns, X)
        graph.nodes.append(Node("Identity", [label], [operator.outputs[0].full_name], {}))
        graph.nodes.append(Node("Identity", [scores], [operator.outputs[1].full_name], {}))
        _copy(graph, container)

    def parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        operator = scope.declare_local_operator(f"Psilearn{type(model).__name__}", model)
        operator.inputs = inputs
        operator.outputs.append(scope.declare_local_variable("label", Int64TensorType()))
        operator.outputs.append(scope.declare_local_variable("scores", DoubleTensorType()))
        return operator.outputs

    for one in classes:
        alias = f"Psilearn{one.__name__}"
        skl2onnx.update_registered_converter(one, alias, shapes, convert, overwrite=True, parser=parse)


def _copy(graph: Graph, container: Any) -> None:
    """Put a graph into the container of skl2onnx."""
    from onnx import numpy_helper

    for name, values in graph.constants.items():
        container.initializers.append(numpy_helper.from_array(values, name))
    for at, node in enumerate(graph.nodes):
        name = f"{graph.prefix}op{at}"
        container.add_node(node.op, node.inputs, node.outputs, op_version=OPSET, name=name, **node.attributes)
