import { newMessageCodec } from "../runtime/messages.ts";

/** Wire format of the plugin registration API. Source: k8s.io/kubelet pkg/apis/pluginregistration/v1 */
export const registrationMessages = newMessageCodec({
  InfoRequest: {},
  /** A plugin's description of itself. */
  PluginInfo: {
    /** `CSIPlugin`, `DevicePlugin`. */
    type: [1, "string"],
    name: [2, "string"],
    /** Socket of the plugin's service; empty when it is the registration socket. */
    endpoint: [3, "string"],
    supportedVersions: [4, "string[]"],
  },
  RegistrationStatus: { pluginRegistered: [1, "bool"], error: [2, "string"] },
  RegistrationStatusResponse: {},
});

export const registrationService = "/pluginregistration.Registration";
