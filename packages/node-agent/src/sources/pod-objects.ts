import type { ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** The objects that Pods of this node refer to. Every method throws NotFound as the API server would. */
export interface PodObjects {
  configMap(namespace: string, name: string): Promise<ConfigMap>;
  secret(namespace: string, name: string): Promise<Secret>;
  claim(namespace: string, name: string): Promise<PersistentVolumeClaim>;
  persistentVolume(name: string): Promise<PersistentVolume>;
  /** A token of a service account, bound to a Pod; made new when four fifths of its life are over. */
  serviceAccountToken(request: TokenRequestOptions): Promise<IssuedToken>;
}

export interface IssuedToken {
  token: string;
  expirationTimestamp: string;
}

export interface TokenRequestOptions {
  namespace: string;
  serviceAccount: string;
  audience: string | undefined;
  expirationSeconds: number;
  pod: { name: string; uid: string };
}
