"""JSON Schemas of datasets: items are held to them, with the messages of the validator Langfuse uses (ajv)."""

from __future__ import annotations

from typing import Any

from jsonschema import SchemaError, ValidationError
from jsonschema.validators import validator_for


def schema_problem(schema: Any) -> str | None:
    """Why this is not a JSON Schema; None when it is one."""
    if not isinstance(schema, dict):
        return "must be an object"
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        return str(error.message)
    return None


def value_problem(value: Any, schema: Any) -> str | None:
    """What in the value breaks the schema; None when nothing does."""
    found = sorted(validator_for(schema)(schema).iter_errors(value), key=lambda error: list(error.path))
    return _wording(found[0]) if found else None


def _wording(error: ValidationError) -> str:
    place = "".join(f"/{part}" for part in error.absolute_path)
    limit: Any = error.validator_value
    match error.validator:
        case "required":
            present = error.instance if isinstance(error.instance, dict) else {}
            missing = next((name for name in limit if name not in present), "")
            text = f"must have required property '{missing}'"
        case "type":
            text = f"must be {','.join(limit) if isinstance(limit, list) else limit}"
        case "enum":
            text = "must be equal to one of the allowed values"
        case "const":
            text = "must be equal to constant"
        case "additionalProperties":
            text = "must NOT have additional properties"
        case "minLength":
            text = f"must NOT have fewer than {limit} characters"
        case "maxLength":
            text = f"must NOT have more than {limit} characters"
        case "minItems":
            text = f"must NOT have fewer than {limit} items"
        case "maxItems":
            text = f"must NOT have more than {limit} items"
        case "minimum":
            text = f"must be >= {limit}"
        case "maximum":
            text = f"must be <= {limit}"
        case "pattern":
            text = f'must match pattern "{limit}"'
        case _:
            text = error.message
    return f"{place} {text}".strip()
