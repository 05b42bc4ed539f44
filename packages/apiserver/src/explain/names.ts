/** Resources as users name them: `deploy`, `deployment`, `Deployment`, `deployments.apps`. */
import type { ServedResource, ServedResources } from "../handlers/served-resources.ts";

/** @param text `<resource, singular, short name or kind>[.<group>]` @returns undefined for one that stores no objects */
export function resourceNamed(resources: ServedResources, text: string): ServedResource | undefined {
  const wanted = text.toLowerCase();
  const [plain = "", ...rest] = wanted.split(".");
  const group = rest.join(".");
  let found: ServedResource | undefined;
  for (const served of resources.all()) {
    const { definition } = served;
    if (served.store === undefined || (rest.length > 0 && definition.group !== group)) continue;
    const names = [definition.resource, definition.singular, definition.kind.toLowerCase(), ...(definition.shortNames ?? [])];
    if (!names.includes(plain)) continue;
    // Precedence as in kubectl: the core group first, then the groups by name; within a group, the version whose objects are stored.
    if (found === undefined || rankOf(served) < rankOf(found)) found = served;
  }
  return found;
}

const rankOf = ({ definition, isHub, version }: ServedResource): string =>
  `${definition.custom ? 1 : 0} ${definition.group} ${isHub ? 0 : 1} ${version.version}`;
