// Grafana's types as they are in JSON, where an enum is its value.
import type * as grafana from '@grafana/schema';
import type { Options as BarGauge } from '@grafana/schema/dist/esm/raw/composable/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
import type { Options as Heatmap } from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';
import type { Options as Stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as Table } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as TimeSeries } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

type Plain<T> = T extends string
  ? `${T}`
  : T extends (infer Item)[]
    ? Plain<Item>[]
    : T extends object
      ? { [Key in keyof T]: Plain<T[Key]> }
      : T;

// The fields of Prometheus' annotations, which the schema leaves to the data source.
type Annotation = Plain<grafana.AnnotationQuery> & { expr: string; titleFormat: string; useValueForTime: boolean };

export type Dashboard = Plain<Omit<grafana.Dashboard, 'annotations'>> & { annotations: { list: Annotation[] } };

type Check<Options> = (options: Partial<Plain<Options>>) => void;

export declare const panels: {
  bargauge: Check<BarGauge>;
  heatmap: Check<Heatmap>;
  stat: Check<Stat>;
  table: Check<Table>;
  timeseries: Check<TimeSeries>;
};
