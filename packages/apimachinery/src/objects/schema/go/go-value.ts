import { goSyntax } from "../../errors/go-syntax.ts";
import { goQuote } from "../../meta/go-quote.ts";
import { Quantity } from "../../meta/quantity.ts";
import type { FieldDescriptor, FieldType, TypeDescriptor } from "../descriptor.ts";
import { scheme } from "../scheme.ts";
import { goFieldName } from "./go-names.ts";
import { quantityAmount as amount } from "./quantity-amount.ts";

/** Model of upstream's internal structs with their Go types and zero values, as errors print them (`go-print.ts`). */
export type GoValue =
  | { readonly kind: "struct"; readonly type: string; readonly fields: readonly GoField[] }
  /** `items` and `entries` are undefined for nil. */
  | { readonly kind: "list"; readonly type: string; readonly items: readonly GoValue[] | undefined }
  | { readonly kind: "map"; readonly type: string; readonly entries: readonly GoEntry[] | undefined }
  | { readonly kind: "pointer"; readonly type: string; readonly to: GoValue | undefined }
  | GoScalar;

interface GoField {
  readonly name: string;
  readonly value: GoValue;
}
interface GoEntry {
  readonly key: string;
  readonly value: GoValue;
}
/** A scalar, or a value that is printed as a unit: times, untyped JSON. */
interface GoScalar {
  readonly kind: "scalar";
  /** As `%#v` prints it. */
  readonly syntax: string;
}

/** @param type e.g. `core/v1.PodSpec` or `[]core/v1.Volume`. @throws Error for a type that the scheme does not have */
export function goValue(type: string, value: unknown): GoValue {
  const found = scheme.type(type.replace("[]", ""));
  if (found === undefined) throw new Error(`no type ${type}`);
  if (!type.startsWith("[]")) return structOf(found, asObject(value));
  // Cast: the descriptor says that it is a list.
  const items = (value as readonly unknown[]).map((item) => structOf(found, asObject(item)));
  return { kind: "list", type: `[]${goPackage(found)}.${found.goName}`, items };
}

type JsonObject = Readonly<Record<string, unknown>>;

// Cast: an object, whatever its members.
const asObject = (value: unknown): JsonObject => (typeof value === "object" && value !== null ? (value as JsonObject) : {});
const own = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;

function structOf(type: TypeDescriptor, value: JsonObject): GoValue {
  const object = asInternal(type, value);
  const { goType, pkg, fields } = layouts.getOrInsertComputed(type, layoutOf);
  return {
    kind: "struct",
    type: goType,
    fields: fields.map(({ name, field }) => ({
      name,
      value: typeof field === "string" ? goValue(field, object) : fieldValue(field, own(object, field.name), pkg),
    })),
  };
}

interface Layout {
  readonly goType: string;
  readonly pkg: string;
  /** `field` is the name of an embedded type where it is a text. */
  readonly fields: readonly { readonly name: string; readonly field: FieldDescriptor | string }[];
}

const layouts = new Map<TypeDescriptor, Layout>();

function layoutOf(type: TypeDescriptor): Layout {
  const pkg = goPackage(type);
  const fields: { name: string; field: FieldDescriptor | string }[] = [];
  let embedded = "";
  for (const field of internalFields(type)) {
    if (field.declaredBy === type.goName || field.declaredBy === hostFields.declaredBy) {
      const pointer = field.pointer && !notPointers.has(`${type.goName}.${field.name}`);
      fields.push({ name: goFieldName(type.goName, field.name), field: { ...field, pointer } });
    } else if (embedded !== field.declaredBy) {
      embedded = field.declaredBy;
      fields.push({ name: embedded, field: type.name.replace(/[^.]*$/, embedded) });
    }
  }
  return { goType: `${pkg}.${type.goName}`, pkg, fields };
}

/** Package of the internal type, named after its group. Meta types have no internal version. */
function goPackage(type: TypeDescriptor): string {
  return packages.getOrInsertComputed(type, ({ name }) => {
    const [version, group] = name.split(".").toReversed().slice(1);
    return (group === "meta" ? version : group) ?? "";
  });
}

const packages = new Map<TypeDescriptor, string>();

function fieldValue({ type, pointer }: FieldDescriptor, value: unknown, pkg: string): GoValue {
  if (!pointer || type.kind === "time" || type.kind === "microTime") return valueOfType(type, value, pkg, pointer);
  const to = value === undefined ? undefined : valueOfType(type, value, pkg, false);
  return { kind: "pointer", type: goTypeOf(type, pkg), to };
}

function valueOfType(type: FieldType, value: unknown, pkg: string, pointer: boolean): GoValue {
  switch (type.kind) {
    case "struct":
      return structOf(type.struct, asObject(value));
    case "list": {
      const items = Array.isArray(value)
        ? value.map((item) => valueOfType(type.element, item ?? undefined, pkg, false))
        : undefined;
      return { kind: "list", type: goTypeOf(type, pkg), items };
    }
    case "map": {
      if (value === undefined) return { kind: "map", type: goTypeOf(type, pkg), entries: undefined };
      const map = asObject(value);
      // Object.entries of many takes several times as long as their keys.
      const entries = Object.keys(map).map((key) => ({
        key,
        value: valueOfType(type.value, map[key] ?? undefined, pkg, false),
      }));
      return { kind: "map", type: goTypeOf(type, pkg), entries: entries.sort((a, b) => (a.key < b.key ? -1 : 1)) };
    }
    case "string":
      return stringOf(String(value ?? ""));
    case "bool":
      return scalar(String(value ?? false));
    case "int32":
    case "int64":
    case "float64":
      return scalar(String(value ?? 0));
    case "time":
    case "microTime":
      return timeOf(value, pointer);
    case "quantity":
      return quantityOf(String(value ?? ""));
    case "intOrString":
      return intOrString(value);
    default:
      return scalar(goSyntax(value));
  }
}

const scalar = (syntax: string): GoScalar => ({ kind: "scalar", syntax });
const stringOf = (text: string): GoScalar => scalar(goQuote(text));

function goTypeOf(type: FieldType, pkg: string): string {
  if (type.kind === "struct") return `${goPackage(type.struct)}.${type.struct.goName}`;
  if (type.kind === "list" && type.goType.startsWith("[]")) return `[]${goTypeOf(type.element, pkg)}`;
  if (type.kind === "map" && type.goType.startsWith("map[")) return `map[string]${goTypeOf(type.value, pkg)}`;
  // Named scalars, lists and maps belong to the package of the containing struct.
  return type.goType.replace(/^v\d\w*\./, `${pkg}.`);
}

/** @param text `""` for the zero value, whose format is empty, too */
export function quantityOf(text: string): GoValue {
  const { value, scale } = amount(text);
  const format = text === "" ? "" : (Quantity.tryParse(text)?.format ?? "DecimalSI");
  const whole = struct("resource.int64Amount", {
    value: scalar(String(value)),
    scale: scalar(String(scale)),
  });
  const big = struct("resource.infDecAmount", { Dec: { kind: "pointer", type: "inf.Dec", to: undefined } });
  return struct("resource.Quantity", { i: whole, d: big, s: stringOf(text), Format: stringOf(format) });
}

const months = "January February March April May June July August September October November December".split(" ");

/** Times implement GoStringer, also behind a pointer. */
function timeOf(value: unknown, pointer: boolean): GoScalar {
  if (typeof value !== "string") {
    return scalar(pointer ? "<nil>" : "time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)");
  }
  // Cast: the decoder has checked the time.
  const [year, month, ...rest] = value.split(/[-T:.Z]/).map(Number) as [number, number, ...number[]];
  const [day = 0, hour = 0, minute = 0, second = 0, micros = 0] = rest;
  return scalar(
    `time.Date(${year}, time.${months[month - 1]}, ${day}, ${hour}, ${minute}, ${second}, ${micros * 1000}, time.Local)`,
  );
}

function intOrString(value: unknown): GoValue {
  const isText = typeof value === "string";
  const number = isText ? 0 : Number(value ?? 0);
  return struct("intstr.IntOrString", {
    Type: scalar(isText ? "1" : "0"),
    IntVal: scalar(String(number)),
    StrVal: stringOf(isText ? value : ""),
  });
}

function struct(type: string, fields: Readonly<Record<string, GoValue>>) {
  return { kind: "struct", type, fields: Object.entries(fields).map(([name, value]) => ({ name, value })) } as const;
}

/** Pointers that are values in internal structs, as defaulting has set them. */
const notPointers = new Set(["RollingUpdateStatefulSetStrategy.partition", "ServiceAccountTokenProjection.expirationSeconds"]);

/** Fields with another position in internal structs: each follows the given field. */
const moved: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  PodSpec: { setHostnameAsFQDN: "subdomain", preemptionPolicy: "priority", overhead: "runtimeClassName" },
  PodSecurityContext: { fsGroupChangePolicy: "fsGroup" },
  VolumeSource: { quobyte: "rbd" },
  PersistentVolumeSource: { quobyte: "rbd", flexVolume: "iscsi" },
  JSONSchemaProps: { nullable: "type" },
};

/** Fields of PodSpec that belong to the pod's security context in the internal type. */
const hostFields = { declaredBy: "PodSpec", names: ["hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"] } as const;

function internalFields(type: TypeDescriptor): readonly FieldDescriptor[] {
  let fields = [...type.fields];
  if (type.name.startsWith("io.k8s.api.core.v1.")) {
    if (type.goName === "PodSpec") fields = fields.filter(({ name }) => !goneFromPodSpec.has(name));
    if (type.goName === "PodSecurityContext") {
      const podSpec = scheme.type("core/v1.PodSpec")!;
      fields.unshift(...hostFields.names.map((name) => podSpec.field(name)!));
    }
  }
  for (const [name, after] of Object.entries(moved[type.goName] ?? {})) {
    const [field] = fields.splice(
      fields.findIndex((one) => one.name === name),
      1,
    );
    fields.splice(fields.findIndex((one) => one.name === after) + 1, 0, field!);
  }
  return fields;
}

const goneFromPodSpec = new Set<string>([...hostFields.names, "serviceAccount"]);

/** PodSpec as the internal type: host fields in the security context, serviceAccount merged into serviceAccountName. */
function asInternal(type: TypeDescriptor, value: JsonObject): JsonObject {
  if (type.name !== "io.k8s.api.core.v1.PodSpec") return value;
  const ofHost = hostFields.names.flatMap((name) => (own(value, name) === undefined ? [] : [[name, value[name]] as const]));
  return {
    ...value,
    serviceAccountName: value["serviceAccountName"] || value["serviceAccount"],
    securityContext: { ...asObject(value["securityContext"]), ...Object.fromEntries(ofHost) },
  };
}
