import { newMessageCodec } from "../runtime/messages.ts";

/** What a plugin says of itself, as it stands on the wire. Source: k8s.io/kubelet pkg/apis/pluginregistration/v1 */
export const registrationMessages = newMessageCodec({
  InfoRequest: {},
  PluginInfo: {
    type: [1, "string"],
    name: [2, "string"],
    endpoint: [3, "string"],
    supportedVersions: [4, "string[]"],
  },
  RegistrationStatus: { pluginRegistered: [1, "bool"], error: [2, "string"] },
  RegistrationStatusResponse: {},
});

export const registrationService = "/pluginregistration.Registration";

export interface PluginInfo {
  /** `CSIPlugin`, `DevicePlugin`. */
  type: string;
  name: string;
  /** The socket of the plugin itself; empty where it is the one of its registration. */
  endpoint: string;
  supportedVersions: string[];
}
