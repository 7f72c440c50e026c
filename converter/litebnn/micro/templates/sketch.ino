// Prints how long a run of the network takes.
#include <@NAME@.h>

@SKETCH_BUFFERS@
void setup() { Serial.begin(115200); }

void loop() {
  const unsigned long start = micros();
  @NAME@_run(@SKETCH_ARGUMENTS@);
  Serial.print(micros() - start);
  Serial.println(" microseconds");
  delay(1000);
}
