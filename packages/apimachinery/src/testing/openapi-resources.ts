import { builtInResources, type ResourceRow } from "../objects/schema/kinds/resources.ts";
import type { OpenApiResource, OpenApiSubresource } from "../objects/schema/openapi/document.ts";

const connects = new Set(["attach", "exec", "log", "portforward", "proxy"]);

/** All built-in resources with their subresources, as input for the OpenAPI documents. */
export function everyResource(): OpenApiResource[] {
  return builtInResources
    .filter(({ resource }) => !resource.includes("/"))
    .map((row) => ({
      ...row,
      listKind: `${row.kind}List`,
      subresources: builtInResources.filter((other) => isBelow(other, row)).map(toSubresource),
    }));
}

function isBelow(row: ResourceRow, parent: ResourceRow): boolean {
  const { group, version, resource } = parent;
  return row.group === group && row.version === version && row.resource.startsWith(`${resource}/`);
}

function toSubresource(row: ResourceRow): OpenApiSubresource {
  const name = row.resource.slice(row.resource.indexOf("/") + 1);
  const kind = { group: row.kindGroup ?? row.group, version: row.kindVersion ?? row.version, kind: row.kind };
  return { name, kind, verbs: row.verbs, connect: connects.has(name) };
}
