import { formatGroupVersion, type GroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Scale } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v1";
import type { Scale as OldScale } from "@coxswain/apimachinery/objects/schema/kinds/extensions/v1beta1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";

const newVersion = "autoscaling/v1";
const oldVersions: readonly string[] = ["extensions/v1beta1", "apps/v1beta1", "apps/v1beta2"];

export function isScaleVersion(apiVersion: string): boolean {
  return apiVersion === newVersion || oldVersions.includes(apiVersion);
}

/**
 * Converts a Scale to another group. The old versions have the selector both as text and, if it only consists of equality
 * requirements, as a map; the text takes precedence.
 * @throws Error for a group without Scale
 * Source: pkg/apis/{apps/v1beta1,apps/v1beta2,extensions/v1beta1}/conversion.go
 */
export function scaleIn(object: KubeObject, to: GroupVersion): KubeObject {
  const apiVersion = formatGroupVersion(to);
  if (!isScaleVersion(apiVersion))
    throw new Error(`Scale has no version ${apiVersion}: it has ${[newVersion, ...oldVersions].join(", ")}`);
  const isOld = object.apiVersion !== newVersion;
  if (isOld && apiVersion !== newVersion) return { ...object, apiVersion };
  const { status } = object as Scale | OldScale; // cast: the kind says so
  if (status === undefined) return { ...object, apiVersion };
  const converted = isOld ? fromOld(status as OldStatus) : toOld(status as NewStatus); // cast: the version says which
  return { ...object, apiVersion, status: converted } as KubeObject; // cast: a Scale of the other version
}

type OldStatus = NonNullable<OldScale["status"]>;
type NewStatus = NonNullable<Scale["status"]>;

function fromOld({ replicas, selector, targetSelector }: OldStatus): NewStatus {
  const text = targetSelector || (selector === undefined ? "" : LabelSelector.fromSet(selector).toString());
  return { replicas, ...(text !== "" && { selector: text }) };
}

function toOld({ replicas, selector = "" }: NewStatus): OldStatus {
  if (selector === "") return { replicas };
  const labels = labelsOf(selector);
  return { replicas, ...(labels !== undefined && { selector: labels }), targetSelector: selector };
}

function labelsOf(selector: string): Record<string, string> | undefined {
  const { requirements } = LabelSelector.parse(selector);
  const equal = requirements.filter(({ operator }) => operator === "=" || operator === "==");
  if (equal.length < requirements.length) return undefined;
  return Object.fromEntries(equal.map(({ key, values }) => [key, [...values][0]!]));
}
