/**
 * Converts objects to another version of their kind. Lists are converted item by item; `Scale`, which has no separate resource,
 * is converted in scale.ts.
 */
import { coerce } from "@coxswain/apimachinery/objects/codec/json";
import { formatGroupVersion, type GroupVersion, parseGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { builtInResources } from "@coxswain/apiserver/registry/catalogue";
import { conversionsOf } from "@coxswain/apiserver/registry/conversion";
import { isScaleVersion, scaleIn } from "./scale.ts";

const { convert } = conversionsOf(
  builtInResources({
    services: () => {
      throw new Error("conversions need no server");
    },
    serviceClusterIpRange: ["10.0.0.0/24"],
    nodePortRange: { from: 30000, to: 32767 },
    featureEnabled: () => true,
    kubeletConnection: { preferredAddressTypes: [], port: 10250 },
  }),
);

interface List extends KubeObject {
  items: KubeObject[];
}

/**
 * @param object may be modified
 * @throws Error when the kind does not exist in that version
 */
export function inVersion(object: KubeObject, to: GroupVersion): KubeObject {
  const { apiVersion = "", kind = "" } = object;
  // First: the version of a List says nothing of its items.
  if (kind === "List") return { ...object, items: (object as List).items.map((item) => inVersion(canonical(item), to)) } as List; // cast: a List has items
  if (apiVersion === formatGroupVersion(to)) return object;
  if (kind.endsWith("List") && isList(object)) return listInVersion(object, to);
  if (kind === "Scale" && isScaleVersion(apiVersion)) return scaleIn(object, to);
  return convert(object, to);
}

const isList = (object: KubeObject): object is List => "items" in object && Array.isArray(object.items);

/** Items of a typed list have no kind field; it follows from the list's kind. */
function listInVersion(list: List, to: GroupVersion): KubeObject {
  const kind = (list.kind ?? "").slice(0, -"List".length);
  const apiVersion = list.apiVersion ?? "";
  convert({ apiVersion, kind, metadata: {} }, to); // rejects an unknown version even for an empty list
  const items = list.items.map((item) => {
    const { apiVersion: _, kind: __, ...rest } = inVersion({ ...item, apiVersion, kind }, to);
    return rest;
  });
  return { ...list, apiVersion: formatGroupVersion(to), items } as KubeObject; // cast: a KubeObject names only the fields of all kinds
}

/** Items of a `List` can be of any kind and have not been validated yet. */
function canonical(item: KubeObject): KubeObject {
  const gv = parseGroupVersion(item.apiVersion ?? "");
  const type = gv === undefined ? undefined : scheme.kind({ ...gv, kind: item.kind ?? "" });
  return type === undefined ? item : coerce(item, type);
}
