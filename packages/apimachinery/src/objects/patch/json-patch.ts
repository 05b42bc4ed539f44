import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { parseJson } from "../codec/json.ts";
import { encodeJsonTextInSteps } from "../codec/json-encode-steps.ts";
import { parseJsonText, setOwn } from "../codec/json-parse.ts";
import { messageOf } from "../errors/message.ts";
import { badRequest, genericServerResponse, requestEntityTooLarge } from "../errors/status-error.ts";
import { deepClone, deepEqual } from "../meta/deep-equal.ts";
import { isJsonObject, jsonWord } from "../meta/json-value.ts";

/** Maximum number of operations in a patch. Source: apiserver pkg/endpoints/handlers/patch.go, maxJSONPatchOperations */
const maxOperations = 10_000;
/** Maximum total size of the values that `copy` operations of a patch add. Source: apiserver pkg/server/config.go */
const maxCopiedBytes = 3 * 1024 * 1024;

/**
 * Applies a JSON patch (RFC 6902). Objects of built-in kinds are patched in their wire form, with the empty structs and
 * nulls that Go writes, so that paths into these exist.
 * @returns a new document; `document` is not mutated
 * @throws StatusError 400 for an invalid patch, 413 for too many operations, 422 when an operation fails
 */
export function applyJsonPatch(document: unknown, patch: Buffer | string): unknown {
  return atOnce(jsonPatchSteps(document, patch));
}

/** As `applyJsonPatch`, yielding after each operation: every one may shift all elements of a long list. */
export function* jsonPatchSteps(document: unknown, patch: Buffer | string): Steps<unknown> {
  const operations = readPatch(patch);
  yield;
  const state: State = { root: yield* onTheWire(document), copiedBytes: 0 };
  try {
    for (const operation of operations) {
      apply(state, operation);
      yield;
    }
  } catch (err) {
    const refused = genericServerResponse(422, "", { group: "", resource: "" }, "", messageOf(err), 0, false);
    refused.cause = err;
    throw refused;
  }
  return state.root;
}

function* onTheWire(document: unknown): Steps<unknown> {
  if (typeof document !== "object" || document === null) return document;
  const text = yield* encodeJsonTextInSteps(document);
  yield;
  return parseJson(text);
}

interface State {
  root: unknown;
  copiedBytes: number;
}

interface Operation {
  readonly op?: unknown;
  readonly path?: unknown;
  readonly from?: unknown;
  readonly value?: unknown;
}

function readPatch(patch: Buffer | string): Operation[] {
  let operations: unknown;
  try {
    operations = parseJsonText(patch.toString());
  } catch (err) {
    throw badRequest(messageOf(err));
  }
  if (!Array.isArray(operations))
    throw badRequest(`json: cannot unmarshal ${jsonWord(operations)} into Go value of type jsonpatch.Patch`);
  if (operations.length > maxOperations) {
    throw requestEntityTooLarge(`The allowed maximum operations in a JSON patch is ${maxOperations}, got ${operations.length}`);
  }
  for (const operation of operations) {
    if (!isJsonObject(operation)) {
      throw badRequest(`json: cannot unmarshal ${jsonWord(operation)} into Go value of type jsonpatch.Operation`);
    }
  }
  return operations;
}

function apply(state: State, operation: Operation): void {
  const { op } = operation;
  const path = pointerOf(operation.path, "path");
  switch (op) {
    case "add":
      add(state, path, operand(operation));
      return;
    case "remove":
      remove(state, path, "remove");
      return;
    case "replace":
      replace(state, path, operand(operation));
      return;
    case "move": {
      const from = pointerOf(operation.from, "from");
      if (path.startsWith(`${from}/`)) throw new Error(`Unable to move ${from} into itself`);
      add(state, path, remove(state, from, "move"));
      return;
    }
    case "copy":
      copy(state, pointerOf(operation.from, "from"), path);
      return;
    case "test":
      check(state, path, operation);
      return;
    default:
      throw new Error(`Unexpected kind: ${typeof op === "string" ? op : "unknown"}`);
  }
}

function pointerOf(value: unknown, name: string): string {
  if (typeof value !== "string") throw new Error(`unable to decode ${name} field`);
  return value;
}

/** A missing value counts as null, as in upstream's library. */
function operand(operation: Operation): unknown {
  return operation.value === undefined ? null : operation.value;
}

type Container = unknown[] | Record<string, unknown>;

/** The container of a path's last element; undefined when it does not exist. What stands before the first slash is ignored, as upstream. */
function parentOf(state: State, path: string): { container: Container; key: string } | undefined {
  const steps = path.split("/");
  if (steps.length < 2) return undefined;
  let at: unknown = state.root;
  for (let i = 1; i < steps.length - 1; i++) at = childOf(at, unescapeStep(steps[i]!));
  if (typeof at !== "object" || at === null) return undefined;
  return { container: at as Container, key: unescapeStep(steps.at(-1)!) }; // cast: a list or an object, by the line above
}

function unescapeStep(step: string): string {
  return step.includes("~") ? step.replaceAll("~1", "/").replaceAll("~0", "~") : step;
}

function childOf(container: unknown, key: string): unknown {
  if (Array.isArray(container)) {
    const index = indexOf(key);
    return index === undefined ? undefined : container[index < 0 ? index + container.length : index];
  }
  if (typeof container !== "object" || container === null || !Object.hasOwn(container, key)) return undefined;
  return (container as Record<string, unknown>)[key]; // cast: an object that is no list, by the lines above
}

/** Negative indexes count from the end. */
function indexOf(key: string): number | undefined {
  return /^-?\d{1,9}$/.test(key) ? Number(key) : undefined;
}

function listIndex(key: string, length: number, path: string): number {
  const index = indexOf(key);
  if (index === undefined) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`);
  if (index >= length || index < -length)
    throw new Error(`Unable to access invalid index: ${index}: invalid index referenced in ${path}`);
  return index < 0 ? index + length : index;
}

function add(state: State, path: string, value: unknown): void {
  if (path === "") {
    state.root = value;
    return;
  }
  const parent = parentOf(state, path);
  if (parent === undefined)
    throw new Error(`add operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`);
  const { container, key } = parent;
  if (!Array.isArray(container)) {
    setOwn(container, key, value);
    return;
  }
  if (key === "-") {
    container.push(value);
    return;
  }
  container.splice(listIndex(key, container.length + 1, path), 0, value);
}

function remove(state: State, path: string, operation: string): unknown {
  const parent = parentOf(state, path);
  if (parent === undefined)
    throw new Error(`${operation} operation does not apply: doc is missing path: ${JSON.stringify(path)}: missing value`);
  const { container, key } = parent;
  if (Array.isArray(container)) return container.splice(listIndex(key, container.length, path), 1)[0];
  if (!Object.hasOwn(container, key)) throw new Error(`Unable to remove nonexistent key: ${key}: missing value`);
  const value = container[key];
  delete container[key];
  return value;
}

function replace(state: State, path: string, value: unknown): void {
  if (path === "") {
    state.root = value;
    return;
  }
  const parent = parentOf(state, path);
  const { container, key } = parent ?? { container: {}, key: "" };
  if (parent === undefined || (!Array.isArray(container) && !Object.hasOwn(container, key))) {
    throw new Error(`replace operation does not apply: doc is missing key: ${path}: missing value`);
  }
  if (Array.isArray(container)) container[listIndex(key, container.length, path)] = value;
  else setOwn(container, key, value);
}

/** @returns undefined when the path does not exist */
function get(state: State, path: string): unknown {
  if (path === "") return state.root;
  const parent = parentOf(state, path);
  return parent === undefined ? undefined : childOf(parent.container, parent.key);
}

function copy(state: State, from: string, path: string): void {
  const value = get(state, from);
  if (value === undefined) throw new Error(`copy operation does not apply: doc is missing from path: ${from}: missing value`);
  state.copiedBytes += JSON.stringify(value, (_, v: unknown) => (typeof v === "bigint" ? Number(v) : v)).length;
  if (state.copiedBytes > maxCopiedBytes) {
    throw new Error(
      `Unable to complete the copy, the accumulated size increase of copy is ${state.copiedBytes}, exceeding the limit ${maxCopiedBytes}`,
    );
  }
  add(state, path, deepClone(value));
}

function check(state: State, path: string, operation: Operation): void {
  const found = get(state, path);
  const wanted = operand(operation);
  if (found === undefined && wanted === null) return;
  if (found === undefined || !deepEqual(found, wanted)) throw new Error(`testing value ${path} failed: test failed`);
}
