/** A kubeconfig with one cluster and one user. @returns JSON, which is YAML too */
export function kubeconfigOf(given: { readonly server: string; readonly ca: string; readonly token: string }): string {
  const name = "coxswain-testing";
  return `${JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name,
          cluster: { server: given.server, "certificate-authority-data": Buffer.from(given.ca).toString("base64") },
        },
      ],
      users: [{ name, user: { token: given.token } }],
      contexts: [{ name, context: { cluster: name, user: name } }],
      "current-context": name,
    },
    undefined,
    2,
  )}\n`;
}
