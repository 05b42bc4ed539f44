import { fnv32a } from "@coxswain/apimachinery/objects/meta/fnv";
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
  return fnv32a(Buffer.from(show(value, type, true)));
}

function show(value: unknown, type: GoType, withType: boolean): string {
  if (type.kind === "pointer") {
    // go-spew prints one asterisk with the type pointed to and does not repeat the type name of the value.
    const asterisk = withType ? `(*${nameOf(type.to)})` : "<*>";
    return asterisk + show(value, type.to, false);
  }
  const head = withType ? `(${type.name})` : "";
  if (value === undefined || value === null) return `${head}<nil>`;
  return head + body(value, type);
}

/** @throws TypeError for a value of another type, which a damaged checkpoint may hold */
function body(value: unknown, type: Exclude<GoType, { kind: "pointer" }>): string {
  const mismatch = (): Error => new TypeError(`a value is not a ${type.name}`);
  switch (type.kind) {
    case "string":
    case "number":
      return String(value);
    case "bytes":
      if (!Buffer.isBuffer(value)) throw mismatch();
      return `[${value.join(" ")}]`;
    case "list":
      if (!Array.isArray(value)) throw mismatch();
      return `[${value.map((item) => show(item, type.of, false)).join(" ")}]`;
    case "map": {
      if (!(value instanceof Map)) throw mismatch();
      const entries = [...value].sort(([a], [b]) =>
        type.numericKeys ? Number(a) - Number(b) : Buffer.compare(Buffer.from(a), Buffer.from(b)),
      );
      return `map[${entries.map(([key, item]) => `${key}:${show(item, type.of, false)}`).join(" ")}]`;
    }
    case "struct":
      if (!isJsonObject(value)) throw mismatch();
      return `{${type.fields.map(([name, of]) => `${name}:${show(value[name], of, true)}`).join(" ")}}`;
  }
}

const nameOf = (type: GoType): string => (type.kind === "pointer" ? `*${nameOf(type.to)}` : type.name);
