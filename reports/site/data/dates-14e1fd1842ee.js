rnnbench.put("dates-14e1fd1842ee",["2026-11-27T17:30:01"]);
