// What the example needs of kube-prometheus: one object of a mixin's alerts and rules, and its dashboards.
function(params) {
  local config = { namespace: 'monitoring', labels: { prometheus: 'k8s' } } + params,
  prometheusRules: {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: config.name, namespace: config.namespace, labels: config.labels },
    spec: { groups: config.mixin.prometheusAlerts.groups + config.mixin.prometheusRules.groups },
  },
  grafanaDashboards: config.mixin.grafanaDashboards,
}
