import { Fnv32a } from "@coxswain/apimachinery/objects/meta/fnv";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";

/**
 * Description of a Go type. Upstream's checksums are computed over go-spew output, which includes type names; `name` is
 * the name that go-spew prints.
 */
export type GoType =
  | { kind: "string" | "number"; name: string }
  | { kind: "bytes"; name: "[]uint8" }
  | { kind: "list"; name: string; of: GoType }
  | { kind: "map"; name: string; of: GoType; numericKeys?: boolean }
  | { kind: "struct"; name: string; fields: readonly (readonly [name: string, type: GoType])[] }
  | { kind: "pointer"; to: GoType };

/**
 * The checksum of a checkpoint file, compatible with upstream's so that either kubelet can read the other's state files.
 * @param value objects for structs, keyed by field name; Maps for maps
 * Source: pkg/kubelet/checkpointmanager/checksum, pkg/util/hash; github.com/davecgh/go-spew, %#v with sorted keys
 */
export function goChecksum(value: unknown, type: GoType): number {
  const hash = new Fnv32a();
  show(hash, value, type, true);
  return hash.value;
}

/** Hashes the text as it is made: it is several times as long as a checkpoint of tens of thousands of devices. */
function show(hash: Fnv32a, value: unknown, type: GoType, withType: boolean): void {
  if (type.kind === "pointer") {
    // go-spew prints one asterisk with the type pointed to and does not repeat the type name of the value.
    hash.text(withType ? `(*${nameOf(type.to)})` : "<*>");
    show(hash, value, type.to, false);
    return;
  }
  if (withType) hash.text(`(${type.name})`);
  if (value === undefined || value === null) hash.text("<nil>");
  else showPresent(hash, value, type);
}

/** @throws TypeError for a value of another type, which a damaged checkpoint may hold */
function showPresent(hash: Fnv32a, value: unknown, type: Exclude<GoType, { kind: "pointer" }>): void {
  const mismatch = (): Error => new TypeError(`a value is not a ${type.name}`);
  switch (type.kind) {
    case "string":
    case "number":
      hash.text(String(value));
      break;
    case "bytes":
      if (!Buffer.isBuffer(value)) throw mismatch();
      hash.printedBytes(value);
      break;
    case "list":
      if (!Array.isArray(value)) throw mismatch();
      showAll(hash, "[", value, "]", (item) => show(hash, item, type.of, false));
      break;
    case "map": {
      if (!(value instanceof Map)) throw mismatch();
      const entries = [...value].sort(([a], [b]) =>
        type.numericKeys ? Number(a) - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(b)),
      );
      showAll(hash, "map[", entries, "]", ([key, item]) => {
        hash.text(`${key}:`);
        show(hash, item, type.of, false);
      });
      break;
    }
    case "struct":
      if (!isJsonObject(value)) throw mismatch();
      showAll(hash, "{", type.fields, "}", ([name, of]) => {
        hash.text(`${name}:`);
        show(hash, value[name], of, true);
      });
  }
}

function showAll<T>(hash: Fnv32a, open: string, items: readonly T[], close: string, showOne: (item: T) => void): void {
  hash.text(open);
  for (const [at, item] of items.entries()) {
    if (at > 0) hash.text(" ");
    showOne(item);
  }
  hash.text(close);
}

const nameOf = (type: GoType): string => (type.kind === "pointer" ? `*${nameOf(type.to)}` : type.name);
