import { forbidden, type StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { AdmissionAttributes } from "./plugin.ts";

/** A 403 for the object's name, or its generateName while the name is empty. Source: k8s.io/apiserver pkg/admission/errors.go */
export function refuse(attributes: Pick<AdmissionAttributes, "resource" | "name" | "object">, message: string): StatusError {
  const { group, resource } = attributes.resource;
  const metadata = attributes.object?.metadata;
  const name = attributes.name || metadata?.name || metadata?.generateName || "Unknown";
  return forbidden({ group, resource }, name, message);
}
