import { formatTime } from "../meta/time.ts";
import type {
  ServerStorageVersion,
  StorageVersion,
  StorageVersionCondition,
  StorageVersionStatus,
} from "../schema/kinds/internal/v1alpha1.ts";

/**
 * The status of a StorageVersion when these API servers write the resource: whether they agree on a version, and since
 * when. API servers add themselves with it, the controller manager takes away those that are gone.
 * @param current as it is stored; stays as it was
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
