// kube-prometheus with gpumeter's alerts, recording rules and dashboards:
//
//   jb init
//   jb install github.com/prometheus-operator/kube-prometheus/jsonnet/kube-prometheus@main github.com/gpumeter/gpumeter/mixin@main
//   jsonnet -J vendor -m manifests kube-prometheus.jsonnet
local addMixin = import 'kube-prometheus/lib/mixin.libsonnet';

local gpumeter = addMixin({
  name: 'gpumeter',
  namespace: 'monitoring',
  mixin: (import 'github.com/gpumeter/gpumeter/mixin/mixin.libsonnet') + {
    _config+:: {
      extraAlerts: true,
      idleFor: '1h',
      severities+: { GPUPCIeReplays: 'info' },
    },
  },
});

local kp = (import 'kube-prometheus/main.libsonnet') + {
  values+:: {
    common+: { namespace: 'monitoring' },
    grafana+: { dashboards+:: gpumeter.grafanaDashboards },
  },
};

{ 'gpumeter-prometheusRule.json': gpumeter.prometheusRules }
+ { ['prometheus-' + name + '.json']: kp.prometheus[name] for name in std.objectFields(kp.prometheus) }
+ { ['grafana-' + name + '.json']: kp.grafana[name] for name in std.objectFields(kp.grafana) }
