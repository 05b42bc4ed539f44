import { forbidden, type StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { AdmissionAttributes } from "./plugin.ts";

/** Refuses a write in the name of the object, or of its generateName while it has no name yet. Source: pkg/admission/errors.go */
export function refuse(attributes: AdmissionAttributes, message: string): StatusError {
  const { group, resource } = attributes.resource;
  const metadata = attributes.object?.metadata;
  const name = attributes.name || metadata?.name || metadata?.generateName || "Unknown";
  return forbidden({ group, resource }, name, message);
}
