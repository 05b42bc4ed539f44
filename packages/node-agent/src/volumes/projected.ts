import { joinedFailures } from "@coxswain/apimachinery/objects/errors/joined-failures";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { PayloadFile } from "./atomic-writer.ts";
import { inMemory } from "./memory-files.ts";
import { commonUser } from "./ownership.ts";
import { configMapFiles, downwardFiles, secretFiles } from "./payload.ts";
import type { VolumeContext, VolumePlugin } from "./volume-plugin.ts";

const tokenMode = 0o600;
const defaultTokenLifeSeconds = 3600;

/** Several sources in one directory; contains service account tokens. Source: pkg/volume/projected */
export const projected: VolumePlugin = {
  name: "kubernetes.io~projected",
  refreshed: true,
  supports: (volume) => volume.projected !== undefined,
  setUp: async (context) => inMemory(context, await collect(context)),
};

async function collect({ pod, volume, objects, downward, turns }: VolumeContext): Promise<Map<string, PayloadFile>> {
  const { sources = [], defaultMode = 0o644 } = volume.projected ?? {};
  const files = new Map<string, PayloadFile>();
  const errors: string[] = [];
  const namespace = pod.metadata.namespace;
  for (const source of sources) {
    const turn = turns?.next(); // a thousand sources may each be the 100,000 keys of a ConfigMap
    if (turn !== undefined) await turn;
    try {
      let found = new Map<string, PayloadFile>();
      if (source.secret !== undefined) {
        found = await secretFiles(objects, namespace, { ...source.secret, name: source.secret.name ?? "" }, defaultMode, turns);
      } else if (source.configMap !== undefined) {
        found = await configMapFiles(
          objects,
          namespace,
          { ...source.configMap, name: source.configMap.name ?? "" },
          defaultMode,
          turns,
        );
      } else if (source.downwardAPI !== undefined) {
        found = downwardFiles(pod, source.downwardAPI.items ?? [], defaultMode, downward);
      } else if (source.serviceAccountToken !== undefined) {
        const { audience, expirationSeconds, path } = source.serviceAccountToken;
        const { token } = await objects.serviceAccountToken({
          namespace,
          serviceAccount: pod.spec.serviceAccountName || "default",
          audience,
          expirationSeconds: expirationSeconds ?? defaultTokenLifeSeconds,
          pod: { name: pod.metadata.name, uid: pod.metadata.uid },
        });
        const uid = commonUser(pod);
        const narrow = uid !== undefined || pod.spec.securityContext?.fsGroup !== undefined;
        found.set(path, { data: Buffer.from(token, "utf8"), mode: narrow ? tokenMode : defaultMode, uid });
      }
      for (const [path, file] of found) files.set(path, file);
    } catch (err) {
      errors.push(messageOf(err));
    }
  }
  if (errors.length > 0) throw new Error(joinedFailures(errors));
  return files;
}
