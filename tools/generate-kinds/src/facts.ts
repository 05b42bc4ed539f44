/**
 * The generator's input: every API type by Go package, read from a JSON file.
 * Types that are not sent over the wire (interfaces, function types, codecs) are removed here.
 */
export interface Facts {
  [goPackage: string]: Record<string, TypeFact>;
}

export interface TypeFact {
  fields?: FieldFact[];
  /** Go type behind a named type: `string`, `[]string`, `map[…]…`, `any` for interfaces. */
  alias?: string;
  enum?: string[];
  markers?: string[];
}

export interface FieldFact {
  /** JSON name; `""` for inline fields, `-` for fields that are not in JSON. */
  name: string;
  type: string;
  /** `wire,number,label` */
  proto?: string;
  inline?: boolean;
  omitempty?: boolean;
  optional?: boolean;
  deprecated?: boolean;
  listType?: string;
  listMapKeys?: string[];
  mapType?: string;
  patchStrategy?: string;
  patchMergeKey?: string;
  default?: string;
  unionDiscriminator?: boolean;
}

/** One group version, the generator's unit of output. */
export interface PackageFacts {
  readonly goPackage: string;
  /** Output folder below `schema/kinds`: `core/v1`. */
  readonly folder: string;
  /** API group; `""` for core. */
  readonly group: string;
  readonly version: string;
  readonly types: ReadonlyMap<string, TypeFact>;
}

const groupOfFolder: Readonly<Record<string, string>> = {
  admission: "admission.k8s.io",
  admissionregistration: "admissionregistration.k8s.io",
  apiextensions: "apiextensions.k8s.io",
  apiregistration: "apiregistration.k8s.io",
  authentication: "authentication.k8s.io",
  authorization: "authorization.k8s.io",
  certificates: "certificates.k8s.io",
  coordination: "coordination.k8s.io",
  core: "",
  discovery: "discovery.k8s.io",
  events: "events.k8s.io",
  flowcontrol: "flowcontrol.apiserver.k8s.io",
  imagepolicy: "imagepolicy.k8s.io",
  internal: "internal.apiserver.k8s.io",
  meta: "meta.k8s.io",
  networking: "networking.k8s.io",
  node: "node.k8s.io",
  rbac: "rbac.authorization.k8s.io",
  scheduling: "scheduling.k8s.io",
  storage: "storage.k8s.io",
};

/** Types with special JSON and protobuf encodings, which the codecs know by these names. */
export const builtinTypes: Readonly<Record<string, string>> = {
  "k8s.io/apimachinery/pkg/apis/meta/v1.Time": "Time",
  "k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime": "MicroTime",
  "k8s.io/apimachinery/pkg/apis/meta/v1.Duration": "Duration",
  "k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1": "FieldsV1",
  "k8s.io/apimachinery/pkg/api/resource.Quantity": "Quantity",
  "k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
  "k8s.io/apimachinery/pkg/runtime.RawExtension": "RawExtension",
  "k8s.io/apimachinery/pkg/types.UID": "UID",
  "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON": "JSON",
  "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray": "JSONSchemaPropsOrArray",
  "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool": "JSONSchemaPropsOrBool",
  "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "JSONSchemaPropsOrStringArray",
};

/** @returns undefined for packages without wire types. */
export function folderOf(goPackage: string): string | undefined {
  if (goPackage === "k8s.io/apimachinery/pkg/version") return "version/info";
  const parts = goPackage.split("/");
  const version = parts.at(-1)!;
  if (!/^v\d/.test(version)) return undefined;
  const name = parts.at(-2)!;
  return `${name === "apiserverinternal" ? "internal" : name}/${version}`;
}

const notOnTheWire = new Set(["Patch", "Timestamp", "InternalEvent", "NodeResources"]);

/** The group versions with their wire types, by folder. */
export function packagesOf(facts: Facts): PackageFacts[] {
  const packages: PackageFacts[] = [];
  for (const [goPackage, all] of Object.entries(facts)) {
    const folder = folderOf(goPackage);
    if (folder === undefined) continue;
    const [name, version] = folder.split("/") as [string, string]; // cast: folders have the form group/version
    const types = new Map<string, TypeFact>();
    for (const [typeName, fact] of Object.entries(all)) {
      if (fact.alias === "any" || notOnTheWire.has(typeName) || builtinTypes[`${goPackage}.${typeName}`] !== undefined) continue;
      types.set(typeName, fact);
    }
    packages.push({ goPackage, folder, group: groupOfFolder[name] ?? name, version, types });
  }
  return packages.sort((a, b) => (a.folder < b.folder ? -1 : 1));
}

/** A Go type split into its outermost constructor and the inner type. */
export type GoType =
  | { form: "pointer"; element: GoType }
  | { form: "list"; element: GoType }
  | { form: "map"; element: GoType }
  | { form: "plain"; name: string; goPackage: string | undefined };

/** Parses `*pkg.T`, `[]T`, `map[K]T` and names. Map keys are strings on the wire, whatever their Go type is. */
export function parseGoType(text: string): GoType {
  if (text === "[]byte") return { form: "plain", name: "[]byte", goPackage: undefined };
  if (text.startsWith("*")) return { form: "pointer", element: parseGoType(text.slice(1)) };
  if (text.startsWith("[]")) return { form: "list", element: parseGoType(text.slice(2)) };
  if (text.startsWith("map[")) return { form: "map", element: parseGoType(text.slice(text.indexOf("]") + 1)) };
  const dot = text.lastIndexOf(".");
  return dot < 0
    ? { form: "plain", name: text, goPackage: undefined }
    : { form: "plain", name: text.slice(dot + 1), goPackage: text.slice(0, dot) };
}
