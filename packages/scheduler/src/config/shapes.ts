import type { ObjectShape } from "@coxswain/apimachinery/flags/config-shape";
import { fileShape, type Settings } from "@coxswain/apimachinery/flags/settings";
import {
  connectionSettings,
  insecureAddressSettings,
  leaderElectionSettings,
  profilingSettings,
  schedulingSettings,
} from "../settings.ts";
import { object } from "./object-shape.ts";
import { pluginPoints } from "./plugin-sets.ts";

/** The fields of the configuration file. Source: k8s.io/kube-scheduler/config/v1beta3, v1beta2 */

const pluginSet = object("PluginSet", {
  enabled: [object("Plugin", { name: "string", weight: "int" })],
  disabled: [object("Plugin", { name: "string", weight: "int" })],
});

const profile = object("KubeSchedulerProfile", {
  schedulerName: "string",
  plugins: object("Plugins", Object.fromEntries(pluginPoints.map((point) => [point, pluginSet]))),
  pluginConfig: [object("PluginConfig", { name: "string", args: "any" })],
});

const extender = object("Extender", {
  urlPrefix: "string",
  filterVerb: "string",
  preemptVerb: "string",
  prioritizeVerb: "string",
  weight: "int",
  bindVerb: "string",
  enableHTTPS: "bool",
  tlsConfig: object("ExtenderTLSConfig", {
    insecure: "bool",
    serverName: "string",
    certFile: "string",
    keyFile: "string",
    caFile: "string",
    certData: "string",
    keyData: "string",
    caData: "string",
  }),
  httpTimeout: "duration",
  nodeCacheCapable: "bool",
  managedResources: [object("ExtenderManagedResource", { name: "string", ignoredByScheduler: "bool" })],
  ignorable: "bool",
});

const rows = { ...connectionSettings, ...leaderElectionSettings, ...profilingSettings, ...schedulingSettings };

function configurationShape(settings: Settings): ObjectShape {
  const { goName, fields } = fileShape(settings, {
    "": "KubeSchedulerConfiguration",
    clientConnection: "ClientConnectionConfiguration",
    leaderElection: "LeaderElectionConfiguration",
  });
  return { goName, fields: { ...fields, profiles: [profile], extenders: [extender] } };
}

export const configurationShapes = {
  v1beta3: configurationShape(rows),
  v1beta2: configurationShape({ ...rows, ...insecureAddressSettings }),
};
