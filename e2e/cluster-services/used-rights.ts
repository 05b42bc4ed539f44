import type { AuditEvent } from "../framework/audit.ts";

/** A ClusterRole, or a Role with its namespace. */
export interface RoleView {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly rules?: readonly {
    readonly apiGroups: readonly string[];
    readonly resources: readonly string[];
    readonly resourceNames?: readonly string[];
    readonly verbs: readonly string[];
  }[];
}

/**
 * Rights of a role of coxswain-services that no request has used. All parts read through the same informers, so that any request uses a right to
 * list or watch; the others are used by requests of the role's part, which its user agent names.
 * @param events of the process @returns such as `create services in kube-system`, with the names that the rule has
 */
export function unusedRights({ metadata: { name, namespace }, rules = [] }: RoleView, events: readonly AuditEvent[]): string[] {
  const part = name.split(":")[1];
  return rules.flatMap(({ apiGroups, resources, resourceNames = [], verbs }) =>
    resources.flatMap((resource) =>
      verbs.flatMap((verb) => {
        const isOfPart = ({ userAgent = "" }: AuditEvent): boolean =>
          part === undefined || ["list", "watch"].includes(verb) || userAgent.endsWith(`/${part}`);
        const isUsed = events.some((event) => {
          if (event.objectRef === undefined || event.verb !== verb || !isOfPart(event)) return false;
          const { apiGroup = "", subresource, name: object = "" } = event.objectRef;
          const path = subresource === undefined ? event.objectRef.resource : `${event.objectRef.resource}/${subresource}`;
          const isHere = namespace === undefined || event.objectRef.namespace === namespace;
          return (
            isHere &&
            path === resource &&
            apiGroups.includes(apiGroup) &&
            (resourceNames.length === 0 || resourceNames.includes(object))
          );
        });
        const right = `${verb} ${resource}${namespace === undefined ? "" : ` in ${namespace}`}`;
        return isUsed ? [] : [`${right}${resourceNames.length === 0 ? "" : ` (${resourceNames.join()})`}`];
      }),
    ),
  );
}
