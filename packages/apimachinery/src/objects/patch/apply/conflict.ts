/**
 * Conflicts: an applied configuration changes fields that other managers own.
 * Source: structured-merge-diff v4 merge/conflict.go; k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/internal/conflict.go
 */
import { applyConflict, type StatusError } from "../../errors/status-error.ts";
import { goQuote } from "../../meta/go-quote.ts";
import { type FieldSet, paths } from "./field-set.ts";
import type { ManagedSet } from "./managed-fields.ts";
import { displayPath, type Path } from "./path-element.ts";

export interface Conflict {
  readonly owner: ManagedSet;
  readonly path: Path;
}

/** Thrown while applying; becomes a StatusError through `conflictError`. */
export class ApplyConflicts extends Error {
  readonly conflicts: readonly Conflict[];

  constructor(conflicts: readonly Conflict[]) {
    super("apply conflicts");
    this.conflicts = conflicts;
  }
}

/** One conflict with the owner for each of the fields. */
export function conflictsWith(owner: ManagedSet, fields: FieldSet): Conflict[] {
  return paths(fields).map((path) => ({ owner, path }));
}

/** Maximum number of fields in a response. Upstream has no limit. */
const mostNamed = 1000;

/** StatusError 409 with one cause for each field. */
export function conflictError(conflicts: readonly Conflict[]): StatusError {
  const causes = conflicts.slice(0, mostNamed).map(({ owner, path }) => ({
    reason: "FieldManagerConflict",
    message: `conflict with ${describe(owner)}`,
    field: displayPath(path),
  }));
  return applyConflict(causes, messageOf(conflicts));
}

function messageOf(conflicts: readonly Conflict[]): string {
  const [first] = conflicts;
  if (conflicts.length === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${describe(first.owner)}: ${displayPath(first.path)}`;
  }
  const byOwner = Map.groupBy(conflicts.slice(0, mostNamed), ({ owner }) => owner);
  const lines = [...byOwner].flatMap(([owner, those]) => [
    `conflicts with ${describe(owner)}:`,
    ...those.map(({ path }) => `- ${displayPath(path)}`),
  ]);
  if (conflicts.length > mostNamed) lines.push(`and ${conflicts.length - mostNamed} more`);
  return `Apply failed with ${conflicts.length} conflicts: ${lines.join("\n")}`;
}

function describe(owner: ManagedSet): string {
  const name = goQuote(owner.manager) + (owner.subresource === "" ? "" : ` with subresource ${goQuote(owner.subresource)}`);
  return owner.operation === "Update" ? `${name} using ${owner.apiVersion}` : name;
}
