import { builtinTypes, type FieldFact, folderOf, type PackageFacts, parseGoType, type TypeFact } from "./facts.ts";

/** The data table of one group version, with one type per line for readable diffs. The format is described in `schema/tables.ts`. */
export function writeTable(facts: PackageFacts): string {
  const lines = [...facts.types].map(([name, type]) => `  ${JSON.stringify(name)}: ${JSON.stringify(typeRow(facts, type))}`);
  const head = `"goPackage": ${JSON.stringify(facts.goPackage)},\n"group": ${JSON.stringify(facts.group)},\n"version": ${JSON.stringify(facts.version)},`;
  return `{\n${head}\n"types": {\n${lines.join(",\n")}\n}\n}\n`;
}

function typeRow(facts: PackageFacts, type: TypeFact): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  if (type.alias !== undefined) row["alias"] = shortType(facts, type.alias);
  if (type.enum !== undefined) row["enum"] = type.enum;
  const markers = (type.markers ?? []).filter((m) => /^(enum|union|structType=|protobuf=false)/.test(m));
  if (markers.length > 0) row["markers"] = markers;
  if (type.alias === undefined) row["fields"] = (type.fields ?? []).filter((f) => f.name !== "-").map((f) => fieldRow(facts, f));
  return row;
}

function fieldRow(facts: PackageFacts, field: FieldFact): unknown[] {
  let flags = "";
  if (field.omitempty) flags += "o";
  if (field.optional) flags += "p";
  if (field.inline) flags += "i";
  if (field.deprecated) flags += "d";
  if (field.unionDiscriminator) flags += "u";
  const extra: Record<string, unknown> = {};
  if (field.listType !== undefined) extra["listType"] = field.listType;
  if (field.listMapKeys !== undefined) extra["listMapKeys"] = field.listMapKeys;
  if (field.mapType !== undefined) extra["mapType"] = field.mapType;
  if (field.patchStrategy !== undefined) extra["patchStrategy"] = field.patchStrategy;
  if (field.patchMergeKey !== undefined) extra["patchMergeKey"] = field.patchMergeKey;
  if (field.default !== undefined) extra["default"] = JSON.parse(field.default);
  const row: unknown[] = [field.name, shortType(facts, field.type), protoNumber(field), flags];
  if (Object.keys(extra).length > 0) row.push(extra);
  return row;
}

/** 0 for fields without a protobuf encoding. Wire type and label follow from the Go type, because the tags sometimes contradict it. */
function protoNumber(field: FieldFact): number {
  return field.proto === undefined ? 0 : Number(field.proto.split(",")[1]);
}

/** Go types with their package as folder below `schema/kinds`, which is omitted for the table's own package. */
function shortType(facts: PackageFacts, text: string): string {
  const type = parseGoType(text);
  switch (type.form) {
    case "pointer":
      return "*" + shortType(facts, text.slice(1));
    case "list":
      return "[]" + shortType(facts, text.slice(2));
    case "map":
      return "map:" + shortType(facts, text.slice(text.indexOf("]") + 1));
    case "plain": {
      const builtin = builtinTypes[text];
      if (builtin !== undefined) return builtin;
      if (type.goPackage === undefined) return type.name;
      if (type.goPackage === facts.goPackage) return "." + type.name;
      const folder = folderOf(type.goPackage);
      if (folder === undefined) throw new Error(`no folder for ${text}`);
      return `${folder}.${type.name}`;
    }
  }
}
