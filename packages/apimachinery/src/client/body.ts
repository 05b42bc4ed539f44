import { jsonMediaType, protobufMediaType } from "../codec/negotiate.ts";
import { encodeProtobuf, hasProtobufForm } from "../codec/protobuf.ts";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion, type ResourceRef } from "../meta/group-version.ts";
import type { DeleteOptions, KubeObject } from "../meta/types.ts";
import { stringifyWire } from "./wire-json.ts";

/** What goes over the wire, and what it is. */
export interface Body {
  readonly contentType: string;
  readonly bytes: Buffer | string;
}

/**
 * An object for the server: protobuf where that is asked for and both the resource and the object have that form (a custom
 * resource's scale has it, its server does not take it), JSON otherwise.
 * @param subresource whose bodies may be of another kind than the resource, and then say so themselves
 */
export function objectBody(ref: ResourceRef, object: object, protobuf: boolean, subresource: string | undefined): Body {
  const { apiVersion, kind: said } = object as KubeObject;
  const own = apiVersion !== undefined && said !== undefined ? kindOf(apiVersion, said) : undefined;
  const kind = own ?? (subresource === undefined || subresource === "status" ? ref : undefined);
  if (protobuf && kind !== undefined && hasProtobufForm(ref) && hasProtobufForm(kind)) return protobufBody(object, kind);
  // The server wants apiVersion and kind in every body; items of lists come without.
  return jsonBody(
    own !== undefined || subresource !== undefined ? object : { ...object, apiVersion: formatGroupVersion(ref), kind: ref.kind },
  );
}

export function deleteBody(ref: ResourceRef, options: DeleteOptions, protobuf: boolean): Body {
  if (protobuf && hasProtobufForm(ref)) return protobufBody(options, deleteOptionsKind);
  return jsonBody({ kind: "DeleteOptions", apiVersion: "v1", ...options });
}

export function jsonBody(value: unknown): Body {
  return { contentType: jsonMediaType, bytes: stringifyWire(value) };
}

const deleteOptionsKind: GroupVersionKind = { group: "", version: "v1", kind: "DeleteOptions" };

function protobufBody(object: object, kind: GroupVersionKind): Body {
  return { contentType: protobufMediaType, bytes: encodeProtobuf(object, kind) };
}

function kindOf(apiVersion: string, kind: string): GroupVersionKind | undefined {
  const gv = parseGroupVersion(apiVersion);
  return gv && { ...gv, kind };
}
