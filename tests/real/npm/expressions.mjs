// Evaluates GitHub Actions expressions with GitHub's own library. Standard input: {"contexts": {…}, "status": "success" |
// "failure" | "cancelled", "expressions": {name: expression}}; standard output: {name: {"text": …, "truthy": …}}.
import { readFileSync, writeSync } from "node:fs";
import { data, Evaluator, Lexer, Parser } from "@actions/expressions";

const { contexts, status, expressions } = JSON.parse(readFileSync(0, "utf8"));
const statusFunctions = ["always", "success", "failure", "cancelled"].map((name) => ({
  name,
  description: name,
  minArgs: 0,
  maxArgs: 0,
  call: () => new data.BooleanData(name === "always" || name === status),
}));
const byName = new Map(statusFunctions.map((one) => [one.name, one]));
const known = JSON.parse(JSON.stringify(contexts), data.reviver);

function evaluate(expression) {
  const { tokens } = new Lexer(expression).lex();
  const parsed = new Parser(tokens, Object.keys(contexts), statusFunctions).parse();
  return new Evaluator(parsed, known, byName).evaluate();
}

const values = {};
for (const [name, expression] of Object.entries(expressions)) {
  const value = evaluate(expression);
  // Falsy are null, false, 0 and the empty text; a text "false" is truthy.
  const falsy = value.kind === data.Kind.String ? value.value === "" : ["", "0", "false"].includes(value.coerceString());
  values[name] = { text: value.coerceString(), truthy: !falsy };
}
writeSync(1, JSON.stringify(values));
