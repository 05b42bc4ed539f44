import { formatTime } from "../objects/meta/time.ts";
import type {
  ServerStorageVersion,
  StorageVersion,
  StorageVersionCondition,
  StorageVersionStatus,
} from "../objects/schema/kinds/internal/v1alpha1.ts";

/**
 * Computes the status of a StorageVersion from the API servers that write the resource: the common encoding version, if
 * there is one, and the AllEncodingVersionsEqual condition. API servers use it to add themselves, the controller manager to
 * remove servers that no longer exist.
 * @param current the stored object; not mutated
 * Source: k8s.io/apiserver pkg/storageversion/updater.go SetCommonEncodingVersion
 */
export function statusWith(
  current: StorageVersion,
  servers: readonly ServerStorageVersion[],
  nowMs: number,
): StorageVersionStatus {
  const { commonEncodingVersion: before, conditions = [] } = current.status ?? {};
  const [first, ...others] = servers.map(({ encodingVersion }) => encodingVersion);
  const common = others.every((version) => version === first) ? first : undefined;
  const says = common === undefined ? unset : set;
  const old = conditions.find(({ type }) => type === says.type);
  const isAnother = before !== undefined && common !== undefined && before !== common;
  const stays = old !== undefined && old.status === says.status && !isAnother;
  const { generation } = current.metadata;
  const condition: StorageVersionCondition = {
    ...says,
    ...(generation !== undefined && { observedGeneration: generation }),
    lastTransitionTime: stays ? (old.lastTransitionTime ?? null) : formatTime(nowMs),
  };
  return {
    storageVersions: [...servers],
    ...(common !== undefined && { commonEncodingVersion: common }),
    conditions: old === undefined ? [...conditions, condition] : conditions.map((one) => (one === old ? condition : one)),
  };
}

const type = "AllEncodingVersionsEqual";
const set = { type, status: "True", reason: "CommonEncodingVersionSet", message: "Common encoding version set" } as const;
const unset = { type, status: "False", reason: "CommonEncodingVersionUnset", message: "Common encoding version unset" } as const;
