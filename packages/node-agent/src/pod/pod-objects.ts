import type {
  ConfigMap,
  PersistentVolume,
  PersistentVolumeClaim,
  Secret,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** API objects that Pods of this node refer to. Every method throws NotFound like the API server. */
export interface PodObjects {
  configMap(namespace: string, name: string): Promise<ConfigMap>;
  secret(namespace: string, name: string): Promise<Secret>;
  claim(namespace: string, name: string): Promise<PersistentVolumeClaim>;
  persistentVolume(name: string): Promise<PersistentVolume>;
  /** A service account token bound to a Pod; renewed after 80% of its lifetime. */
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
