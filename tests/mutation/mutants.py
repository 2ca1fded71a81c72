"""Finds the mutations that a C++ source admits.

A mutation replaces a piece of the source by one that holds both the original and a changed form, of
which `ddpsim::mutation::on(ID)` chooses: `a - b` becomes `(on(7) ? (a + b) : (a - b))`. Many
mutations thus fit into one program. tree-sitter knows the syntax but no types, so that some do not
compile; schemata.py drops those.

Left alone are headers, messages (what `throw` throws, strings), assertions, and whatever has to be
constant: template arguments, case labels, enumerators, array bounds. A `constexpr` variable whose
value is mutated becomes `const`.
"""

from dataclasses import dataclass

import tree_sitter
import tree_sitter_cpp

ARITHMETIC = {"+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["*"]}
COMPARISON = {
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "==": ["!="],
    "!=": ["=="],
}
LOGIC = {"&&": ["||"], "||": ["&&"]}
ASSIGNMENT = {"+=": "-=", "-=": "+=", "*=": "/=", "/=": "*="}
CALLS = {
    "std::min": "std::max",
    "std::max": "std::min",
    "std::ceil": "std::floor",
    "std::floor": "std::ceil",
}
CONSTANT = {
    "template_argument_list",
    "template_parameter_list",
    "enumerator",
    "static_assert_declaration",
    "array_declarator",
    "throw_statement",
    "attribute_declaration",
    "bitfield_clause",
    "noexcept",
    "preproc_def",
    "concatenated_string",
}
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    kind: str
    start: int  # of the piece that is replaced, in bytes
    end: int
    text: str  # with @ID@ for the number
    change: str  # for readers
    constexpr: tuple | None = None  # the place of a keyword that becomes `const`


def source_of(node):
    return node.text.decode()


def short(text):
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."


def choice(changed, original):
    return f"(::ddpsim::mutation::on(@ID@) ? ({changed}) : ({original}))"


def guarded(statement):
    return f"{{ if (!::ddpsim::mutation::on(@ID@)) {statement} }}"


def negated(node):
    text = source_of(node)
    yield "condition negated", choice(f"!({text})", f"static_cast<bool>({text})"), f"!({text})"


def of_binary(node):
    left, operator, right = (node.child_by_field_name(f) for f in ("left", "operator", "right"))
    for kind, table in (("arithmetic", ARITHMETIC), ("comparison", COMPARISON), ("logic", LOGIC)):
        for other in table.get(source_of(operator), []):
            if kind == "arithmetic" and '"' in source_of(node):
                continue  # texts joined
            changed = f"({source_of(left)}) {other} ({source_of(right)})"
            yield kind, choice(changed, source_of(node)), changed


def of_number(node):
    text = source_of(node)
    if node.parent.type == "user_defined_literal":
        return
    yield "constant", choice(f"{text} + 1", text), f"{text} + 1"
    if text.strip("0.fFuUlL'") != "":
        yield "constant", choice(f"{text} * 2", text), f"{text} * 2"


def of_user_literal(node):
    text = source_of(node)
    yield "constant", choice(f"{text} * 2", text), f"{text} * 2"


def of_truth(node):
    other = "false" if node.type == "true" else "true"
    yield "constant", choice(other, node.type), other


def of_unary(node):
    if source_of(node.child_by_field_name("operator")) == "-":
        argument = source_of(node.child_by_field_name("argument"))
        if node.child_by_field_name("argument").type != "number_literal":
            yield "arithmetic", choice(argument, source_of(node)), argument


def of_call(node):
    name = source_of(node.child_by_field_name("function"))
    if name in CALLS:
        changed = CALLS[name] + source_of(node.child_by_field_name("arguments"))
        yield "call", choice(changed, source_of(node)), changed


def of_if(node):
    condition = node.child_by_field_name("condition")
    value = condition.child_by_field_name("value")
    if value is None or condition.child_by_field_name("initializer") or value.type == "declaration":
        return
    for kind, text, change in negated(value):
        yield kind, text, change, value


def of_conditional(node):
    condition = node.child_by_field_name("condition")
    for kind, text, change in negated(condition):
        yield kind, text, change, condition


def of_statement(node):
    text = source_of(node)
    inner = node.named_children[0] if node.named_children else None
    if inner is None or text.startswith("assert") or ".reserve(" in text:
        return  # memory that is reserved early changes no result
    if inner.type in ("call_expression", "assignment_expression", "update_expression"):
        yield "statement removed", guarded(text), f"no `{short(text)}`"
    if inner.type == "assignment_expression":
        operator = source_of(inner.child_by_field_name("operator"))
        if operator in ASSIGNMENT:
            left, right = (source_of(inner.child_by_field_name(f)) for f in ("left", "right"))
            changed = f"{left} {ASSIGNMENT[operator]} {right};"
            yield (
                "arithmetic",
                f"{{ if (::ddpsim::mutation::on(@ID@)) {changed} else {text} }}",
                changed,
            )


def of_jump(node):
    text = source_of(node)
    yield "statement removed", guarded(text), f"no `{short(text)}`"


def of_return(node):
    value = node.named_children[0] if node.named_children else None
    if value is None or source_of(value) in ("{}", "0", "false", "true", "std::nullopt", "nullptr"):
        return
    text = f"{{ if (::ddpsim::mutation::on(@ID@)) return {{}}; {source_of(node)} }}"
    yield "return value", text, "return {};"


RULES = {
    "binary_expression": of_binary,
    "number_literal": of_number,
    "user_defined_literal": of_user_literal,
    "true": of_truth,
    "false": of_truth,
    "unary_expression": of_unary,
    "call_expression": of_call,
    "if_statement": of_if,
    "conditional_expression": of_conditional,
    "expression_statement": of_statement,
    "throw_statement": of_jump,
    "continue_statement": of_jump,
    "break_statement": of_jump,
    "return_statement": of_return,
}


def constexpr_keyword(node):
    """The keyword `constexpr` of a variable's declaration, or nothing."""
    if node.type not in ("declaration", "field_declaration"):
        return None
    for child in node.children:
        if child.type == "type_qualifier" and source_of(child) == "constexpr":
            return (child.start_byte, child.end_byte)
    return None


def leave_alone(node):
    if node.type == "call_expression":
        return source_of(node.child_by_field_name("function")) == "assert"
    return node.type in CONSTANT


def case_label(parent, node):
    return parent.type == "case_statement" and node == parent.child_by_field_name("value")


def mutants_of(path, name):
    """All mutations of the file `path`, which reports call `name`, in order of place."""
    found = []

    def visit(node, keyword):
        keyword = constexpr_keyword(node) or keyword
        if node.type in ("lambda_expression", "compound_statement"):
            keyword = None
        for kind, text, change, *where in RULES.get(node.type, lambda _: [])(node):
            piece = where[0] if where else node
            found.append(
                Mutant(
                    name,
                    piece.start_point[0] + 1,
                    kind,
                    piece.start_byte,
                    piece.end_byte,
                    text,
                    f"`{short(source_of(piece))}` -> {short(change)}",
                    keyword,
                )
            )
        if not leave_alone(node):
            for child in node.children:
                if not case_label(node, child):
                    visit(child, keyword)

    with open(path, "rb") as file:
        visit(PARSER.parse(file.read()).root_node, None)
    return found
