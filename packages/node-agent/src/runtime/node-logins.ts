import { readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { type Login, loginsIn } from "./image-credentials.ts";

/**
 * Credentials of the node, for the images of all Pods: the first `config.json`, else the first `.dockercfg`. Read for each pull, so
 * that changes count at once; upstream's are up to five minutes old.
 * @param rootDir the agent's folder, `/var/lib/kubelet`, searched first
 * @param home overridden in tests
 * Source: pkg/credentialprovider/config.go ReadDockerConfigFile
 */
export async function nodeLogins(rootDir: string, home = homedir()): Promise<Login[]> {
  const paths = [
    ...[rootDir, ".", join(home, ".docker"), "/.docker"].map((dir) => join(dir, "config.json")),
    ...[rootDir, ".", home, "/"].map((dir) => join(dir, ".dockercfg")),
  ];
  for (const path of paths) {
    try {
      return loginsIn(JSON.parse(await readFile(path, "utf8")));
    } catch {
      // No such file, or not JSON: the next one.
    }
  }
  return [];
}
