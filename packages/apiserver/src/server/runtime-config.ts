/**
 * --runtime-config: the served API versions. The most specific entry wins: resource, version, `api/ga`, `api/beta` or
 * `api/alpha`, `api/all`, the version's default.
 * Source: k8s.io/apiserver pkg/server/resourceconfig/helpers.go, pkg/server/options/api_enablement.go
 */

import { parseBool } from "@coxswain/apimachinery/flags/types";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";

export type IsServed = (group: string, version: string, resource: string, byDefault: boolean) => boolean;

const wholesale = new Set(["api/all", "api/ga", "api/beta", "api/alpha"]);
/** Deprecated, and without effect. */
const ignored = new Set(["api/legacy"]);

/** @throws Error with upstream's text for an unknown key or invalid value */
export function readRuntimeConfig(config: Readonly<Record<string, string>>): IsServed {
  const keys = Object.keys(config).filter((key) => !ignored.has(key));
  if (keys.length === 1 && config["api/all"] === "false") throw new Error("invalid key with only api/all=false");
  const particular = keys.filter((key) => !wholesale.has(key));
  refuseUnknown(particular.map(partsOf));
  const entries = new Map(particular.map((key) => [partsOf(key).join("/"), particularValue(key, config[key]!)]));
  for (const key of keys.filter((one) => wholesale.has(one))) entries.set(key, wholesaleValue(key, config[key]!));
  return (group, version, resource, byDefault) => {
    const gv = `${group}/${version}`;
    return (
      entries.get(`${gv}/${resource}`) ?? entries.get(gv) ?? entries.get(stageOf(version)) ?? entries.get("api/all") ?? byDefault
    );
  };
}

function stageOf(version: string): string {
  if (version.includes("alpha")) return "api/alpha";
  return version.includes("beta") ? "api/beta" : "api/ga";
}

/** `v1` and `api/v1` are the core group's. @throws Error for a malformed key */
function partsOf(key: string): readonly string[] {
  if (key === "v1") return ["", "v1"];
  const parts = key.split("/");
  if (parts[0] === "api" && parts[1] === "v1") parts[0] = "";
  if (parts.length !== 2 && parts.length !== 3) throw new Error(`runtime-config invalid key ${key}`);
  const resource = parts[2];
  if (resource !== undefined && resource !== resource.toLowerCase()) {
    throw new Error(
      `invalid key ${key}: group/version/resource and resource is always lowercase plural, not ${JSON.stringify(resource)}`,
    );
  }
  return parts;
}

function refuseUnknown(keys: readonly (readonly string[])[]): void {
  const known = scheme.groupVersions();
  const groups = new Set(known.map(({ group }) => group));
  const unknown = keys.map(([group]) => group!).filter((group) => !groups.has(group));
  if (unknown.length > 0) throw new Error(`unknown api groups ${unknown.join(",")}`);
  for (const [group = "", version = ""] of keys) {
    if (known.some((one) => one.group === group && one.version === version)) continue;
    throw new Error(`group version ${formatGroupVersion({ group, version })} that has not been registered`);
  }
}

function wholesaleValue(key: string, value: string): boolean {
  if (value !== "true" && value !== "false") throw new Error(`invalid value ${key}=${value}`);
  return value === "true";
}

/** A key without a value enables it. */
function particularValue(key: string, value: string): boolean {
  if (value === "") return true;
  try {
    return parseBool(value);
  } catch (err) {
    throw new Error(`invalid value of ${key}: ${value}, err: ${messageOf(err)}`);
  }
}
