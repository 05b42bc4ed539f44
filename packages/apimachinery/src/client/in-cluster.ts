import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import type { ClientConfig } from "./config.ts";
import { loadKubeconfig } from "./kubeconfig.ts";

/**
 * Configuration inside a Pod: the address from the environment, token and CA from the mounted service account.
 * @throws Error outside a Pod
 * Source: client-go rest.InClusterConfig
 */
export async function inClusterConfig(
  env: NodeJS.ProcessEnv = process.env,
  directory = serviceAccountDirectory,
): Promise<ClientConfig> {
  const host = env["KUBERNETES_SERVICE_HOST"];
  const port = env["KUBERNETES_SERVICE_PORT"];
  if (!host || !port) {
    throw new Error(
      "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined",
    );
  }
  const tokenFile = `${directory}/token`;
  const caFile = `${directory}/ca.crt`;
  const token = await readFile(tokenFile, "utf8");
  return {
    host: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    token: token.trim(),
    tokenFile,
    ...(existsSync(caFile) ? { caFile } : {}),
  };
}

/**
 * Configuration from `--kubeconfig` and `--master`; in-cluster configuration when both are empty.
 * @throws Error when no configuration is found
 * Source: client-go tools/clientcmd BuildConfigFromFlags
 */
export async function configFromFlags(kubeconfig: string, master: string): Promise<ClientConfig> {
  if (kubeconfig !== "") return loadKubeconfig(kubeconfig, master === "" ? {} : { master });
  return master === "" ? inClusterConfig() : { host: master.includes("://") ? master : `http://${master}` };
}

const serviceAccountDirectory = "/var/run/secrets/kubernetes.io/serviceaccount";
