/**
 * Macros, expanded by the parser: `has(e.f)`, `e.all(x, p)`, `e.exists(x, p)`, `e.exists_one(x, p)`, `e.map(x, t)`,
 * `e.map(x, p, t)`, `e.filter(x, p)`.
 * Source: cel-go v0.9 parser/macro.go
 */
import { accumulator, type Call, type Expression, type Name } from "./ast.ts";
import type { Issue } from "./issues.ts";

/** The expanded expression, or the error of an invalid macro call. */
type Expansion = { readonly expression: Expression } | { readonly issue: Issue };

/** @returns undefined when the call is not a macro */
export function expandMacro(call: Call): Expansion | undefined {
  const expand = macros.get(`${call.name}:${call.args.length}:${call.target === undefined ? "" : "method"}`);
  return expand?.(call);
}

type Macro = (call: Call) => Expansion;

const fault = (at: number, message: string): Expansion => ({ issue: { at, message } });

const has: Macro = ({ at, args: [arg] }) =>
  arg?.kind === "select" ? { expression: { ...arg, at, isTest: true } } : fault(at, "invalid argument to has() macro");

/** The parts of a fold other than its variable and range. */
interface Parts {
  readonly start: Expression;
  readonly condition: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

interface Maker {
  readonly so: Expression;
  constant(value: boolean | bigint): Expression;
  call(name: string, ...args: Expression[]): Expression;
  list(...items: Expression[]): Expression;
}

function makerAt(at: number): Maker {
  return {
    so: { kind: "name", at, name: accumulator },
    constant: (value) => ({ kind: "constant", at, value }),
    call: (name, ...args) => ({ kind: "call", at, name, args }),
    list: (...items) => ({ kind: "list", at, items }),
  };
}

/** @param nameless makes the error when the first argument is not a name */
function folding(
  nameless: (call: Call) => Expansion,
  parts: (make: Maker, variable: Name, args: readonly Expression[]) => Parts,
): Macro {
  return (call) => {
    // Cast: a macro has one argument at least, which its match has checked.
    const [variable, ...args] = call.args as [Expression, ...Expression[]];
    if (variable.kind !== "name") return nameless(call);
    const fold = parts(makerAt(call.at), variable, args);
    return {
      expression: { kind: "fold", at: call.at, variable: variable.name, range: call.target!, ...fold },
    };
  };
}

const notSimpleName = ({ args }: Call): Expansion => fault(args[0]!.at, "argument must be a simple name");
const notIdentifier = ({ at }: Call): Expansion => fault(at, "argument is not an identifier");

const all = folding(notSimpleName, ({ so, constant, call }, _variable, [predicate]) => ({
  start: constant(true),
  condition: call("@not_strictly_false", so),
  step: call("_&&_", so, predicate!),
  result: so,
}));

const exists = folding(notSimpleName, ({ so, constant, call }, _variable, [predicate]) => ({
  start: constant(false),
  condition: call("@not_strictly_false", call("!_", so)),
  step: call("_||_", so, predicate!),
  result: so,
}));

const existsOne = folding(notSimpleName, ({ so, constant, call }, _variable, [predicate]) => ({
  start: constant(0n),
  condition: constant(true),
  step: call("_?_:_", predicate!, call("_+_", so, constant(1n)), so),
  result: call("_==_", so, constant(1n)),
}));

const map = folding(notIdentifier, ({ so, constant, call, list }, _variable, args) => {
  const append = call("_+_", so, list(args.at(-1)!));
  return {
    start: list(),
    condition: constant(true),
    step: args.length === 1 ? append : call("_?_:_", args[0]!, append, so),
    result: so,
  };
});

const filter = folding(notIdentifier, ({ so, constant, call, list }, variable, [predicate]) => ({
  start: list(),
  condition: constant(true),
  step: call("_?_:_", predicate!, call("_+_", so, list(variable)), so),
  result: so,
}));

const macros: ReadonlyMap<string, Macro> = new Map([
  ["has:1:", has],
  ["all:2:method", all],
  ["exists:2:method", exists],
  ["exists_one:2:method", existsOne],
  ["map:2:method", map],
  ["map:3:method", map],
  ["filter:2:method", filter],
]);
