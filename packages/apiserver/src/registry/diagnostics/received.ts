import type { Decision, ObjectRef, Verdict } from "@coxswain/apimachinery/decisions/decision";

const verdicts: readonly string[] = ["waiting", "refused", "failed", "done"] satisfies Verdict[];
const longestText = 4_000;
const mostRelated = 100;

type Json = Readonly<Record<string, unknown>>;

/**
 * The decisions in a daemon's answer, without malformed ones and without those about objects that the question did not name.
 * @param component the daemon's name according to its credentials
 */
export function receivedDecisions(component: string, answer: unknown, requested: readonly ObjectRef[]): Decision[] {
  const given = isJson(answer) ? answer["decisions"] : undefined;
  if (!Array.isArray(given)) return [];
  const names = new Set(requested.map(nameOf));
  return given.flatMap((one: unknown): Decision[] => {
    if (!isJson(one)) return [];
    const object = refOf(one["object"]);
    const verdict = text(one["verdict"]);
    if (object === undefined || !names.has(nameOf(object)) || !verdicts.includes(verdict)) return [];
    const { count, plain, nextTryAt, related, details, remedy } = one;
    return [
      {
        component,
        source: text(one["source"]),
        object,
        verdict: verdict as Verdict, // cast: checked above
        reason: text(one["reason"]),
        summary: text(one["summary"]),
        ...(plain !== undefined && { plain: text(plain) }),
        since: text(one["since"]),
        lastAt: text(one["lastAt"]),
        count: typeof count === "number" ? count : 1,
        ...(nextTryAt !== undefined && { nextTryAt: text(nextTryAt) }),
        ...(Array.isArray(related) && { related: related.slice(0, mostRelated).flatMap((ref) => refOf(ref) ?? []) }),
        ...(isJson(details) && { details }),
        ...(remedy !== undefined && { remedy: text(remedy) }),
      },
    ];
  });
}

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

const text = (value: unknown): string => (typeof value === "string" ? value.slice(0, longestText) : "");

function refOf(value: unknown): ObjectRef | undefined {
  if (!isJson(value) || text(value["resource"]) === "") return undefined;
  return {
    group: text(value["group"]),
    resource: text(value["resource"]),
    kind: text(value["kind"]),
    namespace: text(value["namespace"]),
    name: text(value["name"]),
    uid: text(value["uid"]),
  };
}

const nameOf = ({ group, resource, namespace, name }: ObjectRef): string => [group, resource, namespace, name].join(" ");
